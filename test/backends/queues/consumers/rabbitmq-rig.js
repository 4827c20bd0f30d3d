// Consumers of RabbitMQ in tests.

/** @param {string[]} urls @param {string} queue @param {object} [more] options */
export const optionsOf = (urls, queue, more = {}) => ({
  urls,
  tls: { enabled: false },
  queues: [queue],
  prefetch: 100,
  concurrency: 1,
  method_header: 'centrifugo-method',
  publication_data_mode: { enabled: false },
  declare: false,
  bindings: [],
  on_malformed: 'ack',
  ...more,
})
