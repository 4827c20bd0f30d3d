#!/bin/sh
# Deploy hook of certbot: /usr/local/sbin/halley-certificate. Puts a new certificate where nginx and HAProxy
# read it, and reloads them. certbot sets RENEWED_LINEAGE, the folder of the certificate.
set -eu
umask 077
target=${TLS_DIR:-/etc/ssl/halley}
mkdir -p "$target"
cat "$RENEWED_LINEAGE/fullchain.pem" >"$target/fullchain.pem.new"
cat "$RENEWED_LINEAGE/privkey.pem" >"$target/privkey.pem.new"
cat "$target/fullchain.pem.new" "$target/privkey.pem.new" >"$target/haproxy.pem.new"
for name in fullchain privkey haproxy; do
  mv "$target/$name.pem.new" "$target/$name.pem"
done
for service in nginx haproxy; do
  if systemctl is-active --quiet "$service"; then systemctl reload "$service"; fi
done
