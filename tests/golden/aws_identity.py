"""Writes tests/golden/aws/identity.json: where botocore 1.44.8 finds credentials, and what it asks for them.

    python3 -m venv v && v/bin/pip install botocore==1.44.8 && v/bin/python tests/golden/aws_identity.py

Nothing is sent: each request is recorded and answered here. "HOME" stands for the folder that has the case's files, "BASE" for the server.
Headers that say which client asks are left out, and so is the signature, which depends on the time.
"""

import datetime
import hashlib
import json
import os
import pathlib
import tempfile
import urllib.parse
from unittest import mock

import botocore
import botocore.httpsession
import botocore.session
from botocore.awsrequest import AWSResponse

assert botocore.__version__ == "1.44.8"
OUT = pathlib.Path(__file__).parent / "aws" / "identity.json"
BASE = "http://127.0.0.1:4141"
SHOWN = ("x-aws-ec2-metadata-token", "x-aws-ec2-metadata-token-ttl-seconds", "authorization", "x-amz-sso_bearer_token", "accept")
STS = """<{0}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{0}Result><AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/r/s</Arn>
<AssumedRoleId>A:s</AssumedRoleId></AssumedRoleUser><Credentials><AccessKeyId>{1}</AccessKeyId><SecretAccessKey>secret-{1}</SecretAccessKey>
<SessionToken>session-{1}</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></{0}Result></{0}Response>"""
seen = []
roleless = False


def keys(name, token="Token"):
    return json.dumps({"AccessKeyId": name, "SecretAccessKey": "secret-" + name, token: "session-" + name, "Expiration": "2099-01-01T00:00:00Z"})


def answer(url, form):
    """Returns the status and the body of the service that a URL belongs to."""
    if form.get("Action"):
        return 200, STS.format(form["Action"], "AKIDWEB" if form["Action"].endswith("WebIdentity") else "AKIDROLE")
    if url.path.endswith("/federation/credentials"):
        role = {"accessKeyId": "AKIDSSO", "secretAccessKey": "secret-AKIDSSO", "sessionToken": "session-AKIDSSO", "expiration": 4070908800000}
        return 200, json.dumps({"roleCredentials": role})
    if url.path == "/token":
        return 200, json.dumps({"accessToken": "renewed-token", "expiresIn": 28800, "refreshToken": "next-refresh", "tokenType": "Bearer"})
    if url.path == "/latest/api/token":
        return 200, "token-of-the-machine"
    if url.path == "/latest/meta-data/iam/security-credentials/":
        return (404, "") if roleless else (200, "role-of-the-machine")
    if url.path.endswith("/role-of-the-machine"):
        return 200, keys("AKIDMACHINE")
    return 200, keys("AKIDBOX")


class Raw:
    def __init__(self, body):
        self.body = body.encode()

    def stream(self, *_, **__):
        yield self.body


def send(_, request):
    url = urllib.parse.urlsplit(request.url)
    text = request.body or b""
    text = text if isinstance(text, str) else text.decode()
    is_json = text.startswith("{")
    form = {} if is_json else dict(urllib.parse.parse_qsl(text))
    status, body = answer(url, form)
    headers = {k.lower(): (v if isinstance(v, str) else v.decode()) for k, v in request.headers.items()}
    shown = {k: v for k, v in headers.items() if k in SHOWN}
    if shown.get("authorization", "").startswith("AWS4"):
        shown["authorization"] = "AWS4-HMAC-SHA256 Credential=" + shown["authorization"].split("Credential=")[1].split("/")[0] + "/"
    if form.get("RoleSessionName", "").startswith("botocore-session"):
        del form["RoleSessionName"]
    seen.append({"method": request.method, "host": url.scheme + "://" + url.netloc, "path": url.path, "query": dict(urllib.parse.parse_qsl(url.query)),
                 "headers": shown, "form": form, "json": json.loads(text) if is_json else {}, "status": status, "answer": body})
    return AWSResponse(request.url, status, {"content-type": "application/json" if body.startswith("{") else "text/xml"}, Raw(body))


ENV = {"AWS_ACCESS_KEY_ID": "AKIDENV", "AWS_SECRET_ACCESS_KEY": "secret-AKIDENV", "AWS_SESSION_TOKEN": "session-AKIDENV"}
REGION = {"AWS_DEFAULT_REGION": "eu-west-1"}
AT_BASE = {**REGION, "AWS_ENDPOINT_URL_STS": BASE, "AWS_ENDPOINT_URL_SSO": BASE, "AWS_ENDPOINT_URL_SSO_OIDC": BASE,
           "AWS_EC2_METADATA_SERVICE_ENDPOINT": BASE}
WEB = {"AWS_WEB_IDENTITY_TOKEN_FILE": "HOME/token", "AWS_ROLE_ARN": "arn:aws:iam::1:role/web", "AWS_ROLE_SESSION_NAME": "pod/1"}
BOX = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": BASE + "/v1/credentials?id=a%20b"}
TOKEN = {"token": "assertion+of/the~golden"}
ROLE = "role_arn = arn:aws:iam::1:role/team\nsource_profile = base\nrole_session_name = me@example.com\nexternal_id = x 1\nduration_seconds = 3600\n"
BASE_PROFILE = "[profile base]\naws_access_key_id = AKIDBASE\naws_secret_access_key = secret-AKIDBASE\n"
SESSION = "[sso-session corp]\nsso_start_url = https://corp.awsapps.com/start\nsso_region = us-east-2\n"
SSO = "sso_session = corp\nsso_account_id = 111122223333\nsso_role_name = Data Reader\n"
OLD_SSO = "sso_start_url = https://corp.awsapps.com/start\nsso_region = us-east-2\nsso_account_id = 111122223333\nsso_role_name = Data Reader\n"
STATIC = "aws_access_key_id = AKID{0}\naws_secret_access_key = secret-AKID{0}\n"
PROCESS = "credential_process = '/bin/sh' -c \"cat \\\"HOME/printed keys\\\"\"\n"
PRINTED = {"printed keys": json.dumps({"Version": 1, "AccessKeyId": "AKIDPROCESS", "SecretAccessKey": "secret-AKIDPROCESS",
                                       "SessionToken": "session-AKIDPROCESS", "Expiration": "2099-01-01T01:00:00+01:00"})}


def login(name, **more):
    text = {"startUrl": "https://corp.awsapps.com/start", "region": "us-east-2", "accessToken": "token-of-the-login", "expiresAt": "2099-01-01T00:00:00Z", **more}
    return {".aws/sso/cache/" + hashlib.sha1(name.encode()).hexdigest() + ".json": json.dumps(text)}


DUE = {"expiresAt": "2020-01-01T00:00:00Z", "clientId": "client", "clientSecret": "secret-of-the-client", "refreshToken": "refresh-of-the-login",
       "registrationExpiresAt": "2099-01-01T00:00:00Z"}
DEFAULT = "[default]\n"
# From the first source to the last; each case leaves one more away.
ladder = [
    ("environment", ENV, {}, ""),
    ("assumed role", {}, {}, ROLE),
    ("web identity", WEB, TOKEN, ""),
    ("SSO", {}, login("corp"), SSO),
    ("credentials file", {}, {".aws/credentials": "[default]\n" + STATIC.format("FILE")}, ""),
    ("process", {}, PRINTED, PROCESS),
    ("config file", {}, {}, STATIC.format("CONFIG")),
    ("container", BOX, {}, ""),
    ("machine", {}, {}, ""),
]
cases = []
for i, (name, *_) in enumerate(ladder):
    environment, files, config = dict(AT_BASE), {}, DEFAULT
    for _, variables, more, lines in ladder[i:]:
        environment |= variables
        files |= more
        config += lines
    cases.append((name + " before what comes after it" if i + 1 < len(ladder) else name, environment, {**files, ".aws/config": config + BASE_PROFILE + SESSION}))
cases += [
    ("old SSO", AT_BASE, {**login("https://corp.awsapps.com/start"), ".aws/config": DEFAULT + OLD_SSO}),
    ("SSO with a login that is due", AT_BASE, {**login("corp", **DUE), ".aws/config": DEFAULT + SSO + SESSION}),
    ("a chosen profile", {**AT_BASE, "AWS_PROFILE": "team"}, {".aws/config": "[profile team]\n" + ROLE + BASE_PROFILE}),
    ("a role of a profile with an SSO source", {**AT_BASE, "AWS_PROFILE": "team"},
     {**login("corp"), ".aws/config": "[profile team]\nrole_arn = arn:aws:iam::1:role/team\nsource_profile = base\n[profile base]\n" + SSO + SESSION}),
    ("a role by a role", {**AT_BASE, "AWS_PROFILE": "team"},
     {".aws/config": "[profile team]\nrole_arn = arn:aws:iam::1:role/team\nsource_profile = mid\n[profile mid]\nrole_arn = arn:aws:iam::1:role/mid\n"
                     "source_profile = base\n" + BASE_PROFILE}),
    ("a role of the machine", AT_BASE, {".aws/config": DEFAULT + "role_arn = arn:aws:iam::1:role/team\ncredential_source = Ec2InstanceMetadata\n"}),
    ("a web identity of a profile", {**AT_BASE, "AWS_PROFILE": "pod"},
     {**TOKEN, ".aws/config": "[profile pod]\nweb_identity_token_file = HOME/token\nrole_arn = arn:aws:iam::1:role/pod\n"}),
    ("container with a token", {**REGION, **BOX, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "Basic of-the-golden"}, {}),
    ("container with a token's file",
     {**REGION, **BOX, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "no", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "HOME/token"}, TOKEN),
    ("a machine without a role", AT_BASE, {}),
    ("no metadata service", {**AT_BASE, "AWS_EC2_METADATA_DISABLED": "true"}, {}),
]
# Hosts without any setting; no server can stand in for them.
hosts = [
    ("sts", {**REGION, **{k: v for k, v in WEB.items()}}, TOKEN),
    ("sts in China", {"AWS_DEFAULT_REGION": "cn-north-1", **WEB}, TOKEN),
    ("sso", REGION, {**login("corp", **DUE), ".aws/config": DEFAULT + SSO + SESSION}),
    ("container", {**REGION, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials/1?a=b"}, {}),
    ("container of EKS", {**REGION, "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials"}, {}),
    ("container by IPv6", {**REGION, "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://[fd00:ec2::23]/v1/credentials"}, {}),
    ("machine", REGION, {}),
    ("machine by IPv6", {**REGION, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE": "ipv6"}, {}),
    ("container elsewhere", {**REGION, "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://example.com/v1/credentials"}, {}),
]


def run(name, environment, files):
    global roleless
    seen.clear()
    roleless = name == "a machine without a role"
    with tempfile.TemporaryDirectory() as home:
        for path, text in files.items():
            file = pathlib.Path(home) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace("HOME/", home + "/"))
        variables = {k: v.replace("HOME/", home + "/") for k, v in environment.items()} | {"HOME": home, "PATH": os.environ["PATH"]}
        cache = str(pathlib.Path(home) / ".aws/sso/cache")
        with mock.patch.dict(os.environ, variables, clear=True), mock.patch.object(botocore.httpsession.URLLib3Session, "send", send), \
                mock.patch("botocore.tokens.SSOTokenProvider._SSO_TOKEN_CACHE_DIR", cache), \
                mock.patch("botocore.credentials.SSOProvider._SSO_TOKEN_CACHE_DIR", cache):
            problem = ""
            found = None
            try:
                found = botocore.session.Session().get_credentials()
                found = found and found.get_frozen_credentials()
            except ValueError as error:
                problem = type(error).__name__
    requests = [dict(r) for r in seen]
    return {"name": name, "environment": environment, "files": files, "key_id": found.access_key if found else "", "secret": found.secret_key if found else "",
            "session": (found.token or "") if found else "", "refused": bool(problem), "requests": requests}


lines = [json.dumps(run(*case)) for case in cases]
host_lines = []
for case in hosts:
    got = run(*case)
    urls = [r["host"] + r["path"] + ("?" + urllib.parse.urlencode(r["query"]) if r["query"] else "") for r in got["requests"]]
    host_lines.append(json.dumps({"name": got["name"], "environment": got["environment"], "refused": got["refused"], "urls": urls}))
OUT.parent.mkdir(exist_ok=True)
OUT.write_text('{"cases": [\n' + ",\n".join(lines) + '\n], "hosts": [\n' + ",\n".join(host_lines) + "\n]}\n")
print(datetime.date.today(), len(cases), "cases")
