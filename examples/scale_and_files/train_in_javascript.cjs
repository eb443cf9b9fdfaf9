// Train with onnxruntime-web: `node train_in_javascript.cjs FOLDER`, with start.onnx, step.onnx, split.onnx and batches.json
// of train_in_javascript.py in FOLDER; writes weights.json.
const fs = require("fs");
const path = require("path");
const ort = require("onnxruntime-web");

async function main(folder) {
  const batches = JSON.parse(fs.readFileSync(path.join(folder, "batches.json")));
  const session = (name) => ort.InferenceSession.create(fs.readFileSync(path.join(folder, name)));
  const step = await session("step.onnx");
  const start = await session("start.onnx");
  const split = await session("split.onnx");
  const tensor = (rows) => new ort.Tensor("float32", Float32Array.from(rows.flat()), [rows.length, rows[0].length]);
  const losses = [];
  // What a step reads beside a batch: the weights, what the optimizer remembers, and numbers that do not change.
  let state = await start.run({});
  for (let epoch = 0; epoch < batches.n_epochs; epoch++) {
    let loss = 0;
    for (const { X, target } of batches.batches) {
      const results = await step.run({
        X: tensor(X),
        skort_target: tensor(target),
        skort_sample_weight: tensor(X.map(() => [1 / X.length])),
        skort_learning_rate: new ort.Tensor("float32", [batches.learning_rate], []),
        ...state,
      });
      const next = Object.keys(state).filter((name) => name + "_next" in results);
      state = { ...state, ...Object.fromEntries(next.map((name) => [name, results[name + "_next"]])) };
      // A step reads the weights by their names, too.
      state = { ...state, ...(await split.run({ skort_weights: state.skort_weights })) };
      loss += results.skort_objective.data[0] / batches.batches.length;
    }
    losses.push(loss);
  }
  fs.writeFileSync(
    path.join(folder, "weights.json"),
    JSON.stringify({ weights: Array.from(state.skort_weights.data), losses }),
  );
}

main(process.argv[2]);
