// Tokens for Azure's storage from the identity of this job or machine.
#pragma once
#include <stop_token>
#include <string>

namespace tycho {

/// Returns a token for Azure's storage, "" when neither this job nor this machine has an identity. Looks in
/// the order of azure-identity's DefaultAzureCredential: AZURE_CLIENT_SECRET (with AZURE_CLIENT_ID and
/// AZURE_TENANT_ID); the workload's AZURE_FEDERATED_TOKEN_FILE; the managed identity, from IDENTITY_ENDPOINT
/// with IDENTITY_HEADER, else from the machine's metadata service (AZURE_POD_IDENTITY_AUTHORITY_HOST, by
/// default 169.254.169.254), which has one second to answer. A token is kept until 5 minutes before it
/// expires, and masked. From any thread. Throws Error: kUnusable when the identity is refused, kStorage when
/// nobody answers, kTerminated on a stop.
std::string azure_token(const std::stop_token& stop);

}  // namespace tycho
