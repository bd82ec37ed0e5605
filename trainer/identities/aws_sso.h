// Credentials of a person who has logged in with `aws sso login`.
#pragma once
#include <optional>
#include <stop_token>
#include <string>

#include "trainer/identities/aws_profile.h"
#include "trainer/identities/aws_signature.h"
#include "trainer/identities/kept_identity.h"

namespace tycho {

/// Returns the credentials of the role that a profile names by sso_account_id and sso_role_name, nullopt when
/// it names none. The login is that of ~/.aws/sso/cache. A login by an sso_session is renewed before it
/// expires, as the AWS command line does, and kept in its file. Throws Error (kUnusable) that says to log in.
std::optional<Identity<AwsCredentials>> sso_identity(const AwsProfiles& profiles, const std::string& profile,
                                                     const std::stop_token& stop);

}  // namespace tycho
