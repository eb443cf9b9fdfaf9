// Serve complaints.onnx in Java 11 or newer.
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import java.util.Locale;
import java.util.Map;

public class Serve {
    public static void main(String[] args) throws OrtException {
        // Three rows. Every input has the shape (n_rows, 1).
        // NaN is a missing number, "" is missing text.
        float[][] days = {{2}, {Float.NaN}, {25}};
        String[][] channel = {{"shop"}, {""}, {"phone"}};
        String[][] text = {{"thank you"}, {"it burns"}, {"it never came"}};

        var environment = OrtEnvironment.getEnvironment();
        try (var session = environment.createSession("complaints.onnx");
                var input0 = OnnxTensor.createTensor(environment, days);
                var input1 = OnnxTensor.createTensor(environment, channel);
                var input2 = OnnxTensor.createTensor(environment, text);
                var results = session.run(Map.of(
                        "days", input0, "channel", input1, "text", input2))) {
            var labels = (String[]) results.get("label").get().getValue();
            var probabilities =
                    (float[][]) results.get("probabilities").get().getValue();
            for (int row = 0; row < labels.length; row++) {
                System.out.print(labels[row]);
                for (float probability : probabilities[row]) {
                    System.out.printf(Locale.ROOT, " %.7f", probability);
                }
                System.out.println();
            }
        }
    }
}
