"""Writes tests/golden/azure/identity.json: the requests for a token of azure-identity 1.27.0.

    python3 -m venv v && v/bin/pip install azure-identity==1.27.0 && v/bin/python tests/golden/azure_identity.py

Nothing is sent: a transport records each request and answers it. What MSAL says of itself (x-client-..., client_info) is left out.
"""

import json
import os
import pathlib
import tempfile
import urllib.parse
from unittest import mock

from azure.core.pipeline.transport import HttpTransport
from azure.identity import DefaultAzureCredential

OUT = pathlib.Path(__file__).parent / "azure" / "identity.json"
TOKEN = {"access_token": "token-of-the-golden", "expires_in": "3600", "expires_on": "4102444800", "resource": "https://storage.azure.com",
         "token_type": "Bearer"}
seen = []


class Response:
    def __init__(self, request):
        self.request = self.http_request = request
        self.status_code, self.reason, self.headers, self.content_type = 200, "OK", {"Content-Type": "application/json"}, "application/json"
        self.block_size = None
        body = dict(TOKEN)
        if "openid-configuration" in request.url:
            tenant = request.url.split("/v2.0/")[0]
            body = {"issuer": tenant + "/v2.0", "authorization_endpoint": tenant + "/oauth2/v2.0/authorize", "token_endpoint": tenant + "/oauth2/v2.0/token"}
        elif "oauth2/v2.0/token" in request.url:
            body = {"access_token": TOKEN["access_token"], "expires_in": 3600, "token_type": "Bearer"}
        self._text = json.dumps(body)

    def text(self, encoding=None):
        return self._text

    def body(self):
        return self._text.encode()

    @property
    def content(self):
        return self.body()

    def json(self):
        return json.loads(self._text)


class Recorder(HttpTransport):
    def open(self):
        pass

    def close(self):
        pass

    def __exit__(self, *_):
        pass

    def send(self, request, **_):
        url = urllib.parse.urlsplit(request.url)
        body = request.data if isinstance(request.data, dict) else dict(urllib.parse.parse_qsl(request.data or request.body or ""))
        seen.append({
            "method": request.method,
            "host": url.netloc,
            "path": url.path,
            "query": dict(urllib.parse.parse_qsl(url.query)),
            "headers": {k.lower(): v for k, v in request.headers.items() if k.lower() in ("metadata", "x-identity-header")},
            "form": {k: v for k, v in body.items() if not k.startswith("x-client") and k != "client_info"},
        })
        return Response(request)


token_file = pathlib.Path(tempfile.mkdtemp()) / "token"
token_file.write_text("assertion-of-the-golden")
APP = {"AZURE_CLIENT_ID": "11111111-2222", "AZURE_TENANT_ID": "33333333-4444"}
cases = [
    ("client secret", {**APP, "AZURE_CLIENT_SECRET": "secret+of/the~golden"}),
    ("workload", {**APP, "AZURE_FEDERATED_TOKEN_FILE": str(token_file)}),
    ("identity endpoint", {"IDENTITY_ENDPOINT": "http://127.0.0.1:4141/msi/token", "IDENTITY_HEADER": "header-of-the-golden"}),
    ("identity endpoint of a chosen identity",
     {"AZURE_CLIENT_ID": "11111111-2222", "IDENTITY_ENDPOINT": "http://127.0.0.1:4141/msi/token", "IDENTITY_HEADER": "header-of-the-golden"}),
    ("machine", {"AZURE_POD_IDENTITY_AUTHORITY_HOST": "http://127.0.0.1:4141"}),
    ("machine of a chosen identity", {"AZURE_CLIENT_ID": "11111111-2222", "AZURE_POD_IDENTITY_AUTHORITY_HOST": "http://127.0.0.1:4141"}),
    ("a secret before a workload before a machine",
     {**APP, "AZURE_CLIENT_SECRET": "secret+of/the~golden", "AZURE_FEDERATED_TOKEN_FILE": str(token_file), "IDENTITY_ENDPOINT": "http://127.0.0.1:4141/msi/token",
      "IDENTITY_HEADER": "header-of-the-golden"}),
    ("a workload before a machine",
     {**APP, "AZURE_FEDERATED_TOKEN_FILE": str(token_file), "IDENTITY_ENDPOINT": "http://127.0.0.1:4141/msi/token", "IDENTITY_HEADER": "header-of-the-golden"}),
]
lines = []
for name, variables in cases:
    seen.clear()
    with mock.patch.dict(os.environ, variables, clear=True):
        credential = DefaultAzureCredential(transport=Recorder(), disable_instance_discovery=True)
        assert credential.get_token("https://storage.azure.com/.default").token == TOKEN["access_token"]
    shown = {k: "FILE" if k == "AZURE_FEDERATED_TOKEN_FILE" else v for k, v in variables.items()}
    asks = [s for s in seen if s["form"] or s["headers"]]
    assert len(asks) == 1, seen
    lines.append(json.dumps({"name": name, "environment": shown, "request": asks[0]}))
OUT.parent.mkdir(exist_ok=True)
OUT.write_text("[\n" + ",\n".join(lines) + "\n]\n")
