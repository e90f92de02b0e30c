"""What each setting of the broker about connections is for."""

# ruff: noqa: E501

SENTENCES = """\
advertised.listeners: The addresses clients are told to connect to, one for each listener; unset takes those of listeners.
connection.failed.authentication.delay.ms: How long a connection that failed to authenticate is held before it is closed, in milliseconds.
connections.max.idle.ms: After how many milliseconds without a request a connection is closed.
connections.max.reauth.ms: After how many milliseconds an authenticated client must authenticate anew; 0 never asks.
delegation.token.expiry.check.interval.ms: How often expired delegation tokens are removed, in milliseconds.
delegation.token.expiry.time.ms: How many milliseconds a delegation token lives unless it is renewed.
delegation.token.max.lifetime.ms: How many milliseconds a delegation token lives at most, renewed or not.
delegation.token.secret.key: The secret from which delegation tokens are made; the same on every broker and controller.
listener.security.protocol.map: Which security protocol each listener name stands for.
listeners: The addresses the node listens on, as NAME://host:port; an empty host is every address of the machine.
max.connection.creation.rate: How many new connections a second the broker takes.
max.connections: How many connections the broker holds at a time.
max.connections.per.ip: How many connections one client address may hold at a time.
max.connections.per.ip.overrides: Limits of connections for single addresses, as host:limit pairs.
num.network.threads: How many threads of each listener read requests and write answers in Kafka; here one loop does.
principal.builder.class: The Java class that says who a connection belongs to.
queued.max.request.bytes: How many bytes of requests may be in hand before reading pauses; -1 sets no limit.
queued.max.requests: How many requests may wait in Kafka before reading pauses; here each connection has one in hand.
sasl.client.callback.handler.class: The Java class that answers questions during SASL as a client.
sasl.enabled.mechanisms: The SASL mechanisms a listener offers.
sasl.jaas.config: The login of a SASL mechanism in the notation of JAAS; set for a listener and mechanism.
sasl.kerberos.kinit.cmd: The path of Kerberos's kinit.
sasl.kerberos.min.time.before.relogin: How long a Kerberos login rests between two attempts to refresh it, in milliseconds.
sasl.kerberos.principal.to.local.rules: Rules that turn Kerberos principals into short names; the first that matches counts.
sasl.kerberos.service.name: The Kerberos name under which the brokers run.
sasl.kerberos.ticket.renew.jitter: Which share of the time until a ticket is renewed is random.
sasl.kerberos.ticket.renew.window.factor: After which share of a ticket's life it is renewed.
sasl.login.callback.handler.class: The Java class that answers questions at login.
sasl.login.class: The Java class that logs in.
sasl.login.connect.timeout.ms: How long a connection to an identity provider may take, in milliseconds.
sasl.login.read.timeout.ms: How long an identity provider's answer may take, in milliseconds.
sasl.login.refresh.buffer.seconds: How many seconds before its end a credential must have been refreshed.
sasl.login.refresh.min.period.seconds: How many seconds a credential rests at least before it is refreshed.
sasl.login.refresh.window.factor: After which share of a credential's life it is refreshed.
sasl.login.refresh.window.jitter: Which share of a credential's life is added at random before it is refreshed.
sasl.login.retry.backoff.max.ms: The longest wait between two attempts at an identity provider, in milliseconds.
sasl.login.retry.backoff.ms: The first wait between two attempts at an identity provider, in milliseconds.
sasl.mechanism.inter.broker.protocol: The SASL mechanism brokers use among themselves.
sasl.oauthbearer.allow.unverified.audience: Whether a token is taken although nobody says which audience to expect.
sasl.oauthbearer.allow.unverified.issuer: Whether a token is taken although nobody says which issuer to expect.
sasl.oauthbearer.assertion.algorithm: How an assertion is signed that is exchanged for a token.
sasl.oauthbearer.assertion.claim.aud: The audience an assertion names.
sasl.oauthbearer.assertion.claim.exp.seconds: How many seconds an assertion is valid.
sasl.oauthbearer.assertion.claim.iss: The issuer an assertion names.
sasl.oauthbearer.assertion.claim.jti.include: Whether each assertion gets an id of its own.
sasl.oauthbearer.assertion.claim.nbf.seconds: How many seconds before its making an assertion is already valid, for clocks that differ.
sasl.oauthbearer.assertion.claim.sub: The subject an assertion names.
sasl.oauthbearer.assertion.file: The file of an assertion that was made elsewhere.
sasl.oauthbearer.assertion.private.key.file: The file of the private key that signs assertions.
sasl.oauthbearer.assertion.private.key.passphrase: The passphrase of that private key.
sasl.oauthbearer.assertion.template.file: A file with headers and claims to put into every assertion.
sasl.oauthbearer.client.credentials.client.id: The client id that is exchanged for a token.
sasl.oauthbearer.client.credentials.client.secret: The client secret that is exchanged for a token.
sasl.oauthbearer.clock.skew.seconds: How many seconds the clocks of issuer and broker may differ.
sasl.oauthbearer.expected.audience: The audiences of which a token must name one.
sasl.oauthbearer.expected.issuer: The issuer a token must name.
sasl.oauthbearer.jwks.endpoint.refresh.ms: How often the issuer's public keys are fetched anew, in milliseconds.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms: The longest wait between two attempts to fetch the issuer's keys, in milliseconds.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms: The first wait between two attempts to fetch the issuer's keys, in milliseconds.
sasl.oauthbearer.jwks.endpoint.url: Where the issuer's public keys are found.
sasl.oauthbearer.jwt.retriever.class: The Java class that gets tokens.
sasl.oauthbearer.jwt.validator.class: The Java class that checks tokens.
sasl.oauthbearer.scope: The scope that is asked for with a token.
sasl.oauthbearer.scope.claim.name: The claim of a token that holds its scope.
sasl.oauthbearer.sub.claim.name: The claim of a token that holds its subject.
sasl.oauthbearer.token.endpoint.url: Where tokens are got.
sasl.server.callback.handler.class: The Java class that answers questions during SASL as a server.
sasl.server.max.receive.size: How many bytes a client may send before it is authenticated.
security.providers: Java classes that add security algorithms.
socket.listen.backlog.size: How many connections may wait to be accepted by a listener.
socket.receive.buffer.bytes: The receive buffer of a connection's socket, in bytes; -1 leaves it to the system.
socket.request.max.bytes: The largest request the broker reads, in bytes; a larger one closes its connection.
socket.send.buffer.bytes: The send buffer of a connection's socket, in bytes; -1 leaves it to the system.
ssl.allow.dn.changes: Whether a new certificate of a listener may name another subject.
ssl.allow.san.changes: Whether a new certificate of a listener may drop alternative names.
ssl.cipher.suites: The cipher suites a listener offers; empty for all that TLS has.
ssl.client.auth: Whether clients must, may or need not show a certificate.
ssl.enabled.protocols: The versions of TLS a listener speaks.
ssl.endpoint.identification.algorithm: How a server's name is compared with its certificate; empty compares nothing.
ssl.engine.factory.class: The Java class that makes TLS engines.
ssl.key.password: The password of the private key.
ssl.keymanager.algorithm: The algorithm of the JVM's key manager.
ssl.keystore.certificate.chain: The certificate and its chain as PEM text.
ssl.keystore.key: The private key as PEM text.
ssl.keystore.location: The file with the private key and its certificate.
ssl.keystore.password: The password of the file with the private key.
ssl.keystore.type: The format of the file with the private key.
ssl.principal.mapping.rules: Rules that turn a certificate's subject into a user name; the first that matches counts.
ssl.protocol: The version of TLS that is preferred.
ssl.provider: The JVM's provider of TLS.
ssl.secure.random.implementation: The source of chance for TLS.
ssl.trustmanager.algorithm: The algorithm of the JVM's trust manager.
ssl.truststore.certificates: The trusted certificates as PEM text.
ssl.truststore.location: The file with the trusted certificates.
ssl.truststore.password: The password of the file with the trusted certificates.
ssl.truststore.type: The format of the file with the trusted certificates.
"""
