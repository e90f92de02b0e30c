import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.UUID;

/**
 * Runs scenarios: `Scenarios HOST:PORT CLASS,CLASS... [NAME...]`. A scenario is a static method that takes a World, or a World
 * and a group protocol (it is then run with both). Prints "begin NAME", what it says after "| ", and "end NAME SECONDS
 * [why it failed]".
 */
final class Scenarios {
    private static final long TIMEOUT_MS = 110_000;
    private static final PrintStream OUT = System.out;

    private record Scenario(String name, Method method, String protocol) {
    }

    private Scenarios() {
    }

    public static void main(String[] arguments) throws Exception {
        List<String> wanted = Arrays.asList(arguments).subList(2, arguments.length);
        for (String className : arguments[1].split(",")) {
            for (Scenario scenario : scenarios(Class.forName(className))) {
                if (wanted.isEmpty() || wanted.contains(scenario.name)) {
                    run(arguments[0], scenario);
                }
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static List<Scenario> scenarios(Class<?> place) {
        List<Scenario> found = new ArrayList<>();
        for (Method method : place.getDeclaredMethods()) {
            int modifiers = method.getModifiers();
            Class<?>[] parameters = method.getParameterTypes();
            if (!Modifier.isStatic(modifiers) || Modifier.isPrivate(modifiers) || method.isSynthetic()
                    || parameters.length == 0 || parameters[0] != World.class) {
                continue;
            }
            String name = place.getSimpleName() + "." + method.getName();
            if (parameters.length == 1) {
                found.add(new Scenario(name, method, null));
            } else if (parameters.length == 2 && parameters[1] == String.class) {
                found.add(new Scenario(name + ".classic", method, "classic"));
                found.add(new Scenario(name + ".consumer", method, "consumer"));
            }
        }
        found.sort(Comparator.comparing(Scenario::name));
        return found;
    }

    private static void run(String address, Scenario scenario) throws InterruptedException {
        OUT.println("begin " + scenario.name);
        long began = System.nanoTime();
        World world = new World(address, "-" + UUID.randomUUID().toString().substring(0, 8));
        String[] fault = {""};
        Thread thread = new Thread(() -> {
            try {
                if (scenario.protocol == null) {
                    scenario.method.invoke(null, world);
                } else {
                    scenario.method.invoke(null, world, scenario.protocol);
                }
            } catch (InvocationTargetException wrapped) {
                fault[0] = described(wrapped.getCause());
            } catch (Throwable error) {
                fault[0] = described(error);
            }
        }, "scenario");
        thread.setDaemon(true);
        thread.start();
        thread.join(TIMEOUT_MS);
        if (thread.isAlive()) {
            fault[0] = "still running after " + TIMEOUT_MS / 1000 + " s, at " + place(thread.getStackTrace());
            thread.interrupt();
        }
        world.said().forEach(line -> OUT.println("| " + line));
        OUT.printf("end %s %.1f %s%n", scenario.name, (System.nanoTime() - began) / 1e9, fault[0]);
        OUT.flush();
        if (!thread.isAlive()) {
            world.close();
        }
    }

    private static String described(Throwable fault) {
        StringBuilder text = new StringBuilder();
        for (Throwable cause = fault; cause != null; cause = cause.getCause()) {
            text.append(text.length() == 0 ? "" : " < ").append(cause);
        }
        return text.append(", at ").append(place(fault.getStackTrace())).toString().replaceAll("\\s+", " ");
    }

    /** The innermost lines of the scenario itself. */
    private static String place(StackTraceElement[] trace) {
        return Arrays.stream(trace).filter(line -> line.getClassName().indexOf('.') < 0)
                .map(line -> line.getFileName() + ":" + line.getLineNumber()).limit(3).toList().toString();
    }
}
