/**
 * How the publications of a channel are batched (docs/batching.md).
 * @typedef {object} BatchOptions
 * @property {string} namespace '' for channels without one
 * @property {number} maxSize items that end a window; 0: no limit
 * @property {number} maxDelay ms from the first item to the end of its window
 * @property {number} maxBytes that end a window
 * @property {boolean} latest only the newest publication of a window is sent, of each value of `tag`
 * @property {string} tag '' = all publications of the channel count as one value
 */

/** Longest window of a channel that has a size and no delay, ms: no item may wait for ever. */
const SIZE_ONLY_DELAY_MS = 1000

/**
 * @param {string} namespace @param {any} options of the namespace
 * @param {number} queueMaxSize bytes; half of it must be left for other messages when a window is written
 * @returns {Readonly<BatchOptions> | null} null: publications are sent at once
 */
export function batchOptions(namespace, options, queueMaxSize) {
  const { batch_max_size: maxSize, batch_max_delay: delay } = options
  if (!(maxSize > 0 || delay > 0)) return null
  return Object.freeze({
    namespace,
    maxSize,
    maxDelay: delay || SIZE_ONLY_DELAY_MS,
    maxBytes: Math.min(options.batch_max_bytes, Math.ceil(queueMaxSize / 2)),
    latest: options.batch_flush_latest,
    tag: options.batch_conflate_tag,
  })
}
