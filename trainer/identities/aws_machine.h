// Credentials that AWS gives to a container or to a machine.
#pragma once
#include <optional>
#include <stop_token>
#include <string>

#include "trainer/identities/aws_profile.h"
#include "trainer/identities/aws_signature.h"
#include "trainer/identities/kept_identity.h"

namespace tycho {

/// Returns the address of the container's credentials, from AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or
/// AWS_CONTAINER_CREDENTIALS_FULL_URI; "" without one. Throws Error (kUnusable) for http:// on a host that is
/// neither this machine nor one of AWS's own for this purpose.
std::string aws_container_url();

/// Returns the container's credentials, as ECS and EKS give them; nullopt when aws_container_url() is "".
std::optional<Identity<AwsCredentials>> container_identity(const std::stop_token& stop);

/// Returns the address of the machine's metadata service, without a trailing "/"; "" when
/// AWS_EC2_METADATA_DISABLED is true.
std::string aws_metadata_url(const AwsProfiles& profiles);

/// Returns the credentials of the machine's role from its metadata service, version 2, which has
/// AWS_METADATA_SERVICE_TIMEOUT (1 s) to answer. Returns nullopt with the reason in `lack` when there is
/// none.
std::optional<Identity<AwsCredentials>> machine_identity(const AwsProfiles& profiles, std::string& lack,
                                                         const std::stop_token& stop);

/// Returns the credentials of an answer in JSON with AccessKeyId, SecretAccessKey, `token` and Expiration,
/// and masks them. Throws Error (kUnusable) that names `source` when they are incomplete.
Identity<AwsCredentials> credentials_in_json(const std::string& text, const std::string& source,
                                             const char* token);

}  // namespace tycho
