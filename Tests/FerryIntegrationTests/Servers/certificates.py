"""Makes the certificates of the tests in the current directory.

authority.pem      the authority that clients trust
NAME.pem, NAME.key a chain and its key: valid, expired, wrong-name, untrusted, client, stranger
client.encrypted   the client's key under the password `ferry`
pins.json          NAME -> sha256//BASE64 of the public key
"""

import base64
import datetime
import hashlib
import json

import trustme
from cryptography.hazmat.primitives import serialization as form
from cryptography.x509 import load_pem_x509_certificate

LOCAL = ["localhost", "127.0.0.1", "::1"]
authority, stranger = trustme.CA(), trustme.CA()
yesterday = datetime.datetime.utcnow() - datetime.timedelta(days=1)
made = {
    "valid": authority.issue_cert(*LOCAL, *[f"h{number}.localhost" for number in range(20)]),
    "expired": authority.issue_cert(*LOCAL, not_after=yesterday),
    "wrong-name": authority.issue_cert("wrong.example"),
    "untrusted": stranger.issue_cert(*LOCAL),
    "client": authority.issue_cert("client@ferry.example", common_name="ferry-client"),
    "stranger": stranger.issue_cert("stranger@ferry.example", common_name="stranger"),
}
authority.cert_pem.write_to_path("authority.pem")
pins = {}
for name, certificate in made.items():
    with open(f"{name}.pem", "wb") as file:
        for pem in certificate.cert_chain_pems:
            file.write(pem.bytes())
    certificate.private_key_pem.write_to_path(f"{name}.key")
    leaf = load_pem_x509_certificate(certificate.cert_chain_pems[0].bytes())
    key = leaf.public_key().public_bytes(form.Encoding.DER, form.PublicFormat.SubjectPublicKeyInfo)
    pins[name] = "sha256//" + base64.b64encode(hashlib.sha256(key).digest()).decode()

client = form.load_pem_private_key(made["client"].private_key_pem.bytes(), None)
with open("client.encrypted", "wb") as file:
    encryption = form.BestAvailableEncryption(b"ferry")
    file.write(client.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, encryption))
with open("pins.json", "w") as file:
    json.dump(pins, file)
