// Serve complaints.onnx in Node.js: npm install onnxruntime-node
import * as ort from "onnxruntime-node";

const session = await ort.InferenceSession.create("complaints.onnx");

// Three rows. Every input has the shape [n_rows, 1].
// NaN is a missing number, "" is missing text.
const text = ["thank you", "it burns", "it never came"];
const feeds = {
  days: new ort.Tensor("float32", [2, NaN, 25], [3, 1]),
  channel: new ort.Tensor("string", ["shop", "", "phone"], [3, 1]),
  text: new ort.Tensor("string", text, [3, 1]),
};
const { label, probabilities } = await session.run(feeds);

// `data` is flat: the values of the first row, then those of the second.
const [nRows, nClasses] = probabilities.dims;
for (let row = 0; row < nRows; row++) {
  const begin = row * nClasses;
  const values = Array.from(probabilities.data.slice(begin, begin + nClasses));
  console.log(label.data[row], ...values.map((value) => value.toFixed(7)));
}
