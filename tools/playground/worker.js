// Runs the model beside the page, so that the page stays alive: loads it when told to, then
// answers one question after the other. Messages in: {load} once, then {question}. Messages out:
// {progress}, {ready}, {answer} or {failure}, which has a name and values, or a text.
import * as ort from "./runtime/onnxruntime.js";

// One thread needs no special headers from the host, so any static host will do.
ort.env.wasm.numThreads = 1;
ort.env.wasm.proxy = false;
ort.env.logLevel = "error";

let session = null;

// A failure that the page has words for, by the name of its text.
class Named extends Error {
  constructor(name, values = {}) {
    super(name);
    this.failure = { name, values };
  }
}

// Fetch a file and say how far it has come, in bytes; hosts that compress do not say its length.
async function fetchBytes(url, onBytes) {
  const response = await fetch(url);
  if (!response.ok) throw new Named("host-answered", { status: response.status });
  const parts = [];
  let length = 0;
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    length += value.length;
    onBytes(value.length);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

async function load({ program, model, digest }) {
  let loaded = 0;
  const onBytes = (n) => self.postMessage({ progress: (loaded += n) });
  ort.env.wasm.wasmBinary = (await fetchBytes(program, onBytes)).buffer;
  const bytes = await fetchBytes(model, onBytes);
  // Without a secure context there is no crypto.subtle; then the length has to do.
  if (self.crypto?.subtle) {
    const found = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    const hex = [...found].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    if (hex !== digest) throw new Named("damaged");
  }
  session = await ort.InferenceSession.create(bytes, {
    executionProviders: ["wasm"],
    graphOptimizationLevel: "all",
    // Unfold the rounded weights once, instead of at every run.
    extra: { session: { disable_quant_qdq: "1" } },
  });
}

const integers = (values, shape) =>
  new ort.Tensor("int64", BigInt64Array.from(values, BigInt), shape);

// The k largest entries of a row, best first: [[index, value], ...].
function largest(row, k) {
  const best = [];
  for (let index = 0; index < row.length; index++) {
    const value = row[index];
    if (best.length === k && value <= best[k - 1][1]) continue;
    let at = best.length;
    while (at > 0 && best[at - 1][1] < value) at--;
    best.splice(at, 0, [index, value]);
    if (best.length > k) best.pop();
  }
  return best;
}

// The k largest of a row of logits as probabilities.
function mostProbable(row, k) {
  const best = largest(row, k);
  const top = best[0][1];
  let sum = 0;
  for (const value of row) sum += Math.exp(value - top);
  return best.map(([index, value]) => [index, Math.exp(value - top) / sum]);
}

const rowsOf = ({ data, dims: [n, width] }) =>
  Array.from({ length: n }, (_, i) => data.subarray(i * width, (i + 1) * width));

async function answer({ ids, places, alike, k }) {
  const { logits, attentions, cosines } = await session.run({
    input_ids: integers(ids, [ids.length]),
    places: integers(places.flat(), [places.length, 2]),
    alike: integers(alike, [alike.length]),
  });
  return {
    read: rowsOf(logits).map((row) => mostProbable(row, k)),
    alike: rowsOf(cosines).map((row) => largest(row, k)),
    attentions: attentions.data.slice(),
    shape: [...attentions.dims],
  };
}

let turn = Promise.resolve();
self.onmessage = ({ data }) => {
  // One at a time: a session cannot run twice at once.
  turn = turn.then(async () => {
    try {
      if (data.load) {
        await load(data.load);
        self.postMessage({ ready: true });
      } else {
        const found = await answer(data.question);
        self.postMessage({ answer: found, number: data.number }, [found.attentions.buffer]);
      }
    } catch (error) {
      const failure = error?.failure ?? { text: String(error?.message ?? error) };
      self.postMessage({ failure, number: data.number });
    }
  });
};
