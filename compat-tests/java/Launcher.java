import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs main classes one after another in one process, which spares each the start of a JVM: a JSON line in, a JSON line
 * out. The first argument is the jar whose classes every command gets anew, so that nothing static is left over.
 *
 * <p>In: {"main": class, "arguments": [...], "stdin": text}. Out: {"code": exit code, "out": text, "err": text}.
 */
public final class Launcher {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Launcher() {
    }

    /** Takes the place of the end of the process: unwinds the thread that asked for it. */
    private static final class Ended extends Error {
        Ended() {
            super("ended", null, false, false);
        }
    }

    /** The code of the first exit of the running command; a catch-all around it may ask for another. */
    private static final AtomicReference<Integer> EXIT_CODE = new AtomicReference<>();

    private static void exit(int code, String message) {
        if (EXIT_CODE.compareAndSet(null, code)) {
            System.setOut(new PrintStream(OutputStream.nullOutputStream()));
            System.setErr(new PrintStream(OutputStream.nullOutputStream()));
        }
        throw new Ended();
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream replies = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        URL jar = Path.of(arguments[0]).toUri().toURL();
        String line;
        while ((line = commands.readLine()) != null) {
            replies.println(JSON.writeValueAsString(run(jar, JSON.readTree(line))));
        }
        Runtime.getRuntime().halt(0);
    }

    private static ObjectNode run(URL jar, JsonNode command) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        System.setIn(new ByteArrayInputStream(command.path("stdin").asText("").getBytes(StandardCharsets.UTF_8)));
        List<Runnable> hooks = Collections.synchronizedList(new ArrayList<>());
        PrintStream standardOut = System.out;
        PrintStream standardErr = System.err;
        EXIT_CODE.set(null);
        Exit.setExitProcedure(Launcher::exit);
        Exit.setHaltProcedure(Launcher::exit);
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        List<String> arguments = new ArrayList<>();
        command.path("arguments").forEach(argument -> arguments.add(argument.asText()));
        int code = call(jar, command.get("main").asText(), arguments.toArray(String[]::new));
        System.setOut(standardOut);
        System.setErr(standardErr);
        for (Runnable hook : List.copyOf(hooks)) {
            hook.run();
        }
        System.out.flush();
        System.err.flush();
        ObjectNode reply = JSON.createObjectNode();
        reply.put("code", code);
        reply.put("out", out.toString(StandardCharsets.UTF_8));
        reply.put("err", err.toString(StandardCharsets.UTF_8));
        return reply;
    }

    /** The exit code of a main method; as the JVM does, 1 and a trace for what it throws. */
    private static int call(URL jar, String mainClass, String[] arguments) throws InterruptedException {
        AtomicReference<Throwable> fault = new AtomicReference<>();
        Thread thread = new Thread(() -> {
            try {
                URLClassLoader loader = new URLClassLoader(new URL[] {jar}, Launcher.class.getClassLoader());
                Thread.currentThread().setContextClassLoader(loader);
                loader.loadClass(mainClass).getMethod("main", String[].class).invoke(null, (Object) arguments);
            } catch (InvocationTargetException wrapped) {
                fault.set(wrapped.getCause());
            } catch (Throwable error) {
                fault.set(error);
            }
        }, "main");
        thread.start();
        thread.join();
        if (EXIT_CODE.get() != null) {
            return EXIT_CODE.get();
        }
        if (fault.get() != null) {
            System.err.print("Exception in thread \"main\" ");
            fault.get().printStackTrace();
            return 1;
        }
        return 0;
    }
}
