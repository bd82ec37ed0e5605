// Roles of AWS that a job takes on: requests to the Security Token Service.
#pragma once
#include <stop_token>
#include <string>

#include "trainer/identities/aws_profile.h"
#include "trainer/identities/aws_signature.h"
#include "trainer/identities/kept_identity.h"

namespace tycho {

/// A role, and how its session is to be.
struct AwsRole {
  std::string source;  // for messages, such as "AWS_WEB_IDENTITY_TOKEN_FILE"
  std::string arn;
  std::string session_name = "";  // "": one of ours
  std::string external_id = "", duration_s = "";
};

/// Takes on a role by the token in a file, which is read now: AssumeRoleWithWebIdentity.
Identity<AwsCredentials> assume_role_by_token(const AwsProfiles& profiles, const AwsRole& role,
                                              const std::string& token_file, const std::stop_token& stop);

/// Takes on a role by other credentials: AssumeRole.
Identity<AwsCredentials> assume_role(const AwsProfiles& profiles, const AwsRole& role,
                                     const AwsCredentials& by, const std::stop_token& stop);

}  // namespace tycho
