import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.message.FindCoordinatorResponseData;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.requests.ResponseHeader;

/**
 * Stands between a client and a broker and cuts connections: before a request has reached the broker, before any byte of its
 * answer has reached the client, or in the middle of the answer. It tells the client that the broker is to be found here.
 */
final class Cutter implements AutoCloseable {
    /** At which moment a connection is cut. */
    enum Cut {
        REQUEST_IS_LOST, ANSWER_IS_LOST, ANSWER_IS_TORN
    }

    private final String host;
    private final int brokerPort;
    private final Set<ApiKeys> keys;
    private final int oneIn;
    private final ServerSocket server;
    private final Random chance = new Random(20260101);
    private int cuts;
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();

    /** Cuts at one in so many of the requests of these kinds. */
    Cutter(String address, int oneIn, ApiKeys... keys) throws IOException {
        int colon = address.lastIndexOf(':');
        this.host = address.substring(0, colon);
        this.brokerPort = Integer.parseInt(address.substring(colon + 1));
        this.keys = Set.of(keys);
        this.oneIn = oneIn;
        this.server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        inBackground(this::accept);
    }

    String address() {
        return "127.0.0.1:" + server.getLocalPort();
    }

    /** How many connections were cut so far; the moments take turns. */
    synchronized int cuts() {
        return cuts;
    }

    @Override
    public void close() throws IOException {
        server.close();
        for (Socket socket : open) {
            socket.close();
        }
    }

    private synchronized Cut drawn(ApiKeys key) {
        if (!keys.contains(key) || chance.nextInt(oneIn) > 0) {
            return null;
        }
        return Cut.values()[cuts++ % Cut.values().length];
    }

    private interface Work {
        void run() throws IOException;
    }

    private static void inBackground(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (IOException ended) {
                // one of the two sides has closed, or this one has
            }
        }, "cutter");
        thread.setDaemon(true);
        thread.start();
    }

    private void accept() throws IOException {
        while (true) {
            Socket client = server.accept();
            try {
                new Link(client, new Socket(host, brokerPort)).start();
            } catch (IOException refused) {
                client.close();
            }
        }
    }

    /** What is asked for and how its answer will fare. */
    private record Asked(ApiKeys key, short version, Cut cut) {
    }

    /** One client's connection and its continuation to the broker. */
    private final class Link {
        private final Socket client;
        private final Socket broker;
        private final Map<Integer, Asked> asked = new ConcurrentHashMap<>();

        Link(Socket client, Socket broker) throws IOException {
            this.client = client;
            this.broker = broker;
            client.setTcpNoDelay(true);
            broker.setTcpNoDelay(true);
            open.add(client);
            open.add(broker);
        }

        void start() {
            inBackground(() -> untilCut(this::passRequests));
            inBackground(() -> untilCut(this::passAnswers));
        }

        private void untilCut(Work work) throws IOException {
            try {
                work.run();
            } finally {
                client.close();
                broker.close();
                open.remove(client);
                open.remove(broker);
            }
        }

        private void passRequests() throws IOException {
            DataInputStream requests = new DataInputStream(client.getInputStream());
            while (true) {
                ByteBuffer request = frame(requests);
                ApiKeys key = ApiKeys.forId(request.getShort(0));
                Asked one = new Asked(key, request.getShort(2), drawn(key));
                if (one.cut == Cut.REQUEST_IS_LOST) {
                    return;
                }
                asked.put(request.getInt(4), one);
                send(broker.getOutputStream(), request, request.remaining());
            }
        }

        private void passAnswers() throws IOException {
            DataInputStream answers = new DataInputStream(broker.getInputStream());
            while (true) {
                ByteBuffer answer = frame(answers);
                Asked one = asked.remove(answer.getInt(0));
                if (one.cut == Cut.ANSWER_IS_LOST) {
                    return;
                }
                ByteBuffer told = toldToComeHere(one, answer);
                send(client.getOutputStream(), told, one.cut == null ? told.remaining() : told.remaining() / 2);
                if (one.cut != null) {
                    return;
                }
            }
        }
    }

    private static ByteBuffer frame(DataInputStream stream) throws IOException {
        byte[] bytes = new byte[stream.readInt()];
        stream.readFully(bytes);
        return ByteBuffer.wrap(bytes);
    }

    private static void send(OutputStream stream, ByteBuffer frame, int bytes) throws IOException {
        ByteBuffer whole = ByteBuffer.allocate(4 + bytes).putInt(frame.remaining()).put(frame.array(), 0, bytes);
        stream.write(whole.array());
        stream.flush();
    }

    /** The answer with this place in the stead of the broker's. */
    private ByteBuffer toldToComeHere(Asked one, ByteBuffer answer) {
        if (one.key != ApiKeys.METADATA && one.key != ApiKeys.FIND_COORDINATOR) {
            return answer;
        }
        ByteBuffer body = answer.duplicate();
        ResponseHeader.parse(body, one.key.responseHeaderVersion(one.version));
        int start = body.position();
        ByteBufferAccessor reader = new ByteBufferAccessor(body);
        ApiMessage message;
        if (one.key == ApiKeys.METADATA) {
            MetadataResponseData metadata = new MetadataResponseData(reader, one.version);
            metadata.brokers().forEach(broker -> broker.setHost("127.0.0.1").setPort(server.getLocalPort()));
            message = metadata;
        } else {
            FindCoordinatorResponseData found = new FindCoordinatorResponseData(reader, one.version);
            if (found.port() > 0) {
                found.setHost("127.0.0.1").setPort(server.getLocalPort());
            }
            found.coordinators().stream().filter(coordinator -> coordinator.port() > 0)
                    .forEach(coordinator -> coordinator.setHost("127.0.0.1").setPort(server.getLocalPort()));
            message = found;
        }
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer told = ByteBuffer.allocate(start + message.size(cache, one.version));
        told.put(answer.array(), 0, start);
        message.write(new ByteBufferAccessor(told), cache, one.version);
        return told.flip();
    }
}
