"""An S3 server that checks signatures, for tests/host/remote_s3.sh: moto 5.2.5 and boto3 1.44.5.

    python s3_server.py FOLDER PORT

Puts the files of FOLDER into the bucket "texts" under "a b/c+d", prints shell lines that export the key of a user who may read them,
and serves until its input ends.
"""

import json
import os
import sys

os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "1000000000"  # while the user is made

import boto3
from botocore.config import Config
from moto.core.responses import ActionAuthenticatorMixin
from moto.server import ThreadedMotoServer

folder, port = sys.argv[1], int(sys.argv[2])
ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False).start()
url = f"http://127.0.0.1:{port}"
patient = Config(read_timeout=600, retries={"total_max_attempts": 1})  # a second try would find the user that the first one has made
place = dict(endpoint_url=url, region_name="eu-west-1", aws_access_key_id="any", aws_secret_access_key="any", config=patient)
iam = boto3.client("iam", **place)
iam.create_user(UserName="reader")
allow = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["s3:*", "sts:*"], "Resource": "*"}]}
iam.put_user_policy(UserName="reader", PolicyName="read", PolicyDocument=json.dumps(allow))
key = iam.create_access_key(UserName="reader")["AccessKey"]
trust = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "*"}}]}
role = iam.create_role(RoleName="job", AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
iam.put_role_policy(RoleName="job", PolicyName="all", PolicyDocument=json.dumps(allow))
s3 = boto3.client("s3", **place)
s3.create_bucket(Bucket="texts", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
for root, _, files in os.walk(folder):
    for name in files:
        path = os.path.join(root, name)
        s3.upload_file(path, "texts", "a b/c+d/" + os.path.relpath(path, folder))
normal_check = ActionAuthenticatorMixin._authenticate_and_authorize_normal_action


def check(self, resource="*"):
    if self._get_action() != "AssumeRoleWithWebIdentity":  # which is not signed: its token is the proof
        normal_check(self, resource)


ActionAuthenticatorMixin._authenticate_and_authorize_normal_action = check
ActionAuthenticatorMixin.request_count = 10**12  # from here on every request is checked
print(f"export AWS_ACCESS_KEY_ID={key['AccessKeyId']} AWS_SECRET_ACCESS_KEY={key['SecretAccessKey']}")
print(f"export TYCHO_TEST_ROLE={role}")
print(f"export AWS_REGION=eu-west-1 AWS_ENDPOINT_URL={url}", flush=True)
sys.stdin.read()
os._exit(0)
