// Credentials for AWS from the identity of this job, person or machine.
#pragma once
#include <stop_token>
#include <string>

#include "trainer/identities/aws_signature.h"

namespace tycho {

/// Credentials, or why there are none.
struct AwsIdentity {
  AwsCredentials credentials;  // empty without an identity
  std::string lack;            // where one was looked for, and why it was not found; "" with an identity
};

/// Returns the credentials of this process. Looks in botocore's order: AWS_ACCESS_KEY_ID; the role of the
/// profile; the web identity of AWS_WEB_IDENTITY_TOKEN_FILE; the profile's SSO; ~/.aws/credentials; the
/// profile's credential_process; ~/.aws/config; the container; the machine. Those that expire are renewed 15
/// minutes before, and masked. From any thread. Throws Error: kUnusable when an identity is refused or not
/// complete, kStorage when nobody answers, kTerminated on a stop.
AwsIdentity aws_identity(const std::stop_token& stop);

/// Returns the keys of the environment or of a profile alone, for stores that are not AWS's.
AwsIdentity aws_keys();

}  // namespace tycho
