"""Settings of the broker about connections: listeners, TLS, SASL, delegation tokens.

One line each: name, type, importance, when it may change, default, rule of valid values; see
`definition.py` for the notation. Source: Kafka's SocketServerConfigs, BrokerSecurityConfigs, DelegationTokenManagerConfigs.
"""

# ruff: noqa: E501

TABLE = """\
advertised.listeners                                 list      high    read-only     -  unique+
connection.failed.authentication.delay.ms            int       low     read-only     100  >=0
connections.max.idle.ms                              long      medium  read-only     600000  any
connections.max.reauth.ms                            long      medium  read-only     0  any
delegation.token.expiry.check.interval.ms            long      low     read-only     3600000  >=1
delegation.token.expiry.time.ms                      long      medium  read-only     86400000  >=1
delegation.token.max.lifetime.ms                     long      medium  read-only     604800000  >=1
delegation.token.secret.key                          password  medium  read-only     -  any
listener.security.protocol.map                       string    low     per-broker    PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL  any
listeners                                            list      high    per-broker    PLAINTEXT://:9092  unique+
max.connection.creation.rate                         int       medium  cluster-wide  2147483647  >=0
max.connections                                      int       medium  cluster-wide  2147483647  >=0
max.connections.per.ip                               int       medium  cluster-wide  2147483647  >=0
max.connections.per.ip.overrides                     string    medium  cluster-wide  ""  any
num.network.threads                                  int       high    cluster-wide  3  >=1
principal.builder.class                              class     medium  per-broker    org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder  any
queued.max.request.bytes                             long      medium  read-only     -1  any
queued.max.requests                                  int       high    read-only     500  >=1
sasl.client.callback.handler.class                   class     medium  read-only     -  any
sasl.enabled.mechanisms                              list      medium  per-broker    GSSAPI  unique
sasl.jaas.config                                     password  medium  per-broker    -  any
sasl.kerberos.kinit.cmd                              string    medium  per-broker    /usr/bin/kinit  any
sasl.kerberos.min.time.before.relogin                long      medium  per-broker    60000  any
sasl.kerberos.principal.to.local.rules               list      medium  per-broker    DEFAULT  unique
sasl.kerberos.service.name                           string    medium  per-broker    -  any
sasl.kerberos.ticket.renew.jitter                    double    medium  per-broker    0.05  any
sasl.kerberos.ticket.renew.window.factor             double    medium  per-broker    0.8  any
sasl.login.callback.handler.class                    class     medium  read-only     -  any
sasl.login.class                                     class     medium  read-only     -  any
sasl.login.connect.timeout.ms                        int       low     read-only     -  any
sasl.login.read.timeout.ms                           int       low     read-only     -  any
sasl.login.refresh.buffer.seconds                    short     medium  per-broker    300  any
sasl.login.refresh.min.period.seconds                short     medium  per-broker    60  any
sasl.login.refresh.window.factor                     double    medium  per-broker    0.8  any
sasl.login.refresh.window.jitter                     double    medium  per-broker    0.05  any
sasl.login.retry.backoff.max.ms                      long      low     read-only     10000  any
sasl.login.retry.backoff.ms                          long      low     read-only     100  any
sasl.mechanism.inter.broker.protocol                 string    medium  per-broker    GSSAPI  any
sasl.oauthbearer.allow.unverified.audience           boolean   medium  read-only     false  any
sasl.oauthbearer.allow.unverified.issuer             boolean   medium  read-only     false  any
sasl.oauthbearer.assertion.algorithm                 string    medium  read-only     RS256  {ES256,RS256}~
sasl.oauthbearer.assertion.claim.aud                 string    medium  read-only     -  any
sasl.oauthbearer.assertion.claim.exp.seconds         int       low     read-only     300  0..86400
sasl.oauthbearer.assertion.claim.iss                 string    medium  read-only     -  any
sasl.oauthbearer.assertion.claim.jti.include         boolean   medium  read-only     false  any
sasl.oauthbearer.assertion.claim.nbf.seconds         int       low     read-only     60  0..3600
sasl.oauthbearer.assertion.claim.sub                 string    medium  read-only     -  any
sasl.oauthbearer.assertion.file                      string    medium  read-only     -  any
sasl.oauthbearer.assertion.private.key.file          string    medium  read-only     -  any
sasl.oauthbearer.assertion.private.key.passphrase    password  medium  read-only     -  any
sasl.oauthbearer.assertion.template.file             string    medium  read-only     -  any
sasl.oauthbearer.client.credentials.client.id        string    medium  read-only     -  any
sasl.oauthbearer.client.credentials.client.secret    password  medium  read-only     -  any
sasl.oauthbearer.clock.skew.seconds                  int       low     read-only     30  any
sasl.oauthbearer.expected.audience                   list      high    read-only     ""  unique
sasl.oauthbearer.expected.issuer                     string    high    read-only     -  any
sasl.oauthbearer.jwks.endpoint.refresh.ms            long      low     read-only     3600000  any
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms  long      low     read-only     10000  any
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms      long      low     read-only     100  any
sasl.oauthbearer.jwks.endpoint.url                   string    medium  read-only     -  any
sasl.oauthbearer.jwt.retriever.class                 class     medium  read-only     org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever  any
sasl.oauthbearer.jwt.validator.class                 class     medium  read-only     org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator  any
sasl.oauthbearer.scope                               string    medium  read-only     -  any
sasl.oauthbearer.scope.claim.name                    string    low     read-only     scope  any
sasl.oauthbearer.sub.claim.name                      string    low     read-only     sub  any
sasl.oauthbearer.token.endpoint.url                  string    medium  read-only     -  any
sasl.server.callback.handler.class                   class     medium  read-only     -  any
sasl.server.max.receive.size                         int       medium  read-only     524288  any
security.providers                                   string    low     read-only     -  any
socket.listen.backlog.size                           int       medium  read-only     50  >=1
socket.receive.buffer.bytes                          int       high    read-only     102400  any
socket.request.max.bytes                             int       high    read-only     104857600  >=1
socket.send.buffer.bytes                             int       high    read-only     102400  any
ssl.allow.dn.changes                                 boolean   low     read-only     false  any
ssl.allow.san.changes                                boolean   low     read-only     false  any
ssl.cipher.suites                                    list      medium  per-broker    ""  unique
ssl.client.auth                                      string    medium  per-broker    none  {required,requested,none}
ssl.enabled.protocols                                list      medium  per-broker    TLSv1.2,TLSv1.3  unique
ssl.endpoint.identification.algorithm                string    low     per-broker    https  any
ssl.engine.factory.class                             class     low     per-broker    -  any
ssl.key.password                                     password  medium  per-listener  -  any
ssl.keymanager.algorithm                             string    medium  per-broker    SunX509  any
ssl.keystore.certificate.chain                       password  medium  per-listener  -  any
ssl.keystore.key                                     password  medium  per-listener  -  any
ssl.keystore.location                                string    medium  per-listener  -  any
ssl.keystore.password                                password  medium  per-listener  -  any
ssl.keystore.type                                    string    medium  per-listener  JKS  any
ssl.principal.mapping.rules                          string    low     read-only     DEFAULT  any
ssl.protocol                                         string    medium  per-broker    TLSv1.3  any
ssl.provider                                         string    medium  per-broker    -  any
ssl.secure.random.implementation                     string    low     per-broker    -  any
ssl.trustmanager.algorithm                           string    medium  per-broker    PKIX  any
ssl.truststore.certificates                          password  medium  per-listener  -  any
ssl.truststore.location                              string    medium  per-listener  -  any
ssl.truststore.password                              password  medium  per-listener  -  any
ssl.truststore.type                                  string    medium  per-listener  JKS  any
"""
