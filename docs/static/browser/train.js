// Train in this page: the graphs and the rows of `training.js`, by onnxruntime-web. Nothing here knows skort.
"use strict";

(() => {
  const training = window.skortTraining;
  const button = document.getElementById("skort-train");
  const status = document.getElementById("skort-status");
  const { address, integrity } = training.runtime;
  const folder = address || new URL(".", document.currentScript.src).href;

  const bytes = (base64) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const column = (value, n) => new ort.Tensor("float32", new Float32Array(n).fill(value), [n, 1]);
  const matrix = (rows) => new ort.Tensor("float32", Float32Array.from(rows.flat()), [rows.length, rows[0].length]);
  // The browser draws the curve before it goes on.
  const drawn = () => new Promise((resolve) => setTimeout(resolve));

  function draw(losses) {
    const largest = Math.max(...losses);
    const point = (loss, i) => `${50 + (540 * (i + 1)) / training.n_epochs},${230 - (210 * loss) / largest}`;
    document.querySelector("#skort-curve polyline").setAttribute("points", losses.map(point).join(" "));
    document.getElementById("skort-largest").textContent = largest.toFixed(2);
  }

  // The browser compares files from elsewhere with their hashes; those of these pages were compared when they were built.
  async function fetched(name) {
    const answer = await fetch(folder + name, address ? { integrity: integrity[name] } : {});
    if (!answer.ok) throw new Error(`${folder}${name}: ${answer.status}`);
    return answer.arrayBuffer();
  }

  async function loadRuntime() {
    const name = "ort.wasm.min.js";
    await new Promise((resolve, reject) => {
      const attributes = { src: folder + name, integrity: integrity[name], crossOrigin: "anonymous", onload: resolve };
      const onerror = () => reject(new Error(`${folder}${name} does not load, or is another file.`));
      document.head.append(Object.assign(document.createElement("script"), attributes, { onerror }));
    });
    const [module, binary] = await Promise.all(["mjs", "wasm"].map((end) => fetched(`ort-wasm-simd-threaded.${end}`)));
    ort.env.wasm.wasmPaths = { mjs: URL.createObjectURL(new Blob([module], { type: "text/javascript" })) };
    ort.env.wasm.wasmBinary = binary;
    ort.env.wasm.numThreads = 1;
  }

  async function train() {
    if (!window.ort) await loadRuntime();
    const [start, step, split] = await Promise.all(
      [training.start, training.step, training.split].map((graph) => ort.InferenceSession.create(bytes(graph))),
    );
    const eta = new ort.Tensor("float32", [training.learning_rate], []);
    const losses = [];
    // What a step reads beside a batch: the weights, what the optimizer remembers, and numbers that do not change.
    let state = await start.run({});
    for (let epoch = 0; epoch < training.n_epochs; epoch++) {
      let loss = 0;
      for (const { X, target } of training.batches) {
        const results = await step.run({
          X: matrix(X),
          skort_target: matrix(target),
          skort_sample_weight: column(1 / X.length, X.length),
          skort_learning_rate: eta,
          ...state,
        });
        const next = Object.keys(state).filter((name) => `${name}_next` in results);
        state = { ...state, ...Object.fromEntries(next.map((name) => [name, results[`${name}_next`]])) };
        // A step reads the weights by their names, too.
        state = { ...state, ...(await split.run({ skort_weights: state.skort_weights })) };
        loss += results.skort_objective.data[0] / training.batches.length;
      }
      losses.push(loss);
      draw(losses);
      status.textContent = `epoch ${epoch + 1}: loss ${loss.toFixed(4)}`;
      await drawn();
    }
    const weights = Array.from(state.skort_weights.data);
    const difference = Math.max(...weights.map((weight, i) => Math.abs(weight - training.weights[i])));
    status.textContent += `; largest difference from the weights that skort reaches: ${difference.toExponential(1)}`;
    status.dataset.result = JSON.stringify({ losses, difference });
  }

  function run() {
    button.disabled = true;
    train()
      .catch((error) => (status.textContent = String(error)))
      .finally(() => (button.disabled = false));
  }

  button.disabled = false;
  button.addEventListener("click", run);
  if (location.hash === "#train") run();
})();
