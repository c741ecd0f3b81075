#!/usr/bin/env python3
"""moto_keys.py PORT: a bucket `plans` and a user who may read and write it, made with boto3 before the server begins to check; prints
"ID SECRET". The server lets five requests in before it does (INITIAL_NO_AUTH_ACTION_COUNT=5)."""
import json, sys
import boto3

where = {"endpoint_url": "http://127.0.0.1:" + sys.argv[1], "region_name": "us-east-1", "aws_access_key_id": "x", "aws_secret_access_key": "x"}
boto3.client("s3", **where).create_bucket(Bucket="plans")
iam = boto3.client("iam", **where)
iam.create_user(UserName="cairn")
key = iam.create_access_key(UserName="cairn")["AccessKey"]
allow = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
arn = iam.create_policy(PolicyName="plans", PolicyDocument=json.dumps(allow))["Policy"]["Arn"]
iam.attach_user_policy(UserName="cairn", PolicyArn=arn)
print(key["AccessKeyId"], key["SecretAccessKey"])
