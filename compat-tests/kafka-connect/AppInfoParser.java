package org.apache.kafka.common.utils;

/** What the connectors for files ask for their version. Apache Kafka 4.4 has it in another package. */
public final class AppInfoParser {
    private AppInfoParser() {
    }

    public static String getVersion() {
        return "4.0.0";
    }
}
