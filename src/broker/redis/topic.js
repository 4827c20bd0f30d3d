const CHANNEL = 0x63 // c

/**
 * Hands a message to whom it concerns: topics of channels are `<prefix>channel.<name>`, all others begin with another letter.
 * @param {Buffer} topic
 * @param {Buffer} message
 * @param {number} prefixLength bytes of the partition's prefix
 * @param {import('./placement.js').ShardEvents} events
 */
export function dispatch(topic, message, prefixLength, events) {
  if (topic[prefixLength] === CHANNEL) {
    events.channelMessage(topic.toString('utf8', prefixLength + 'channel.'.length, topic.length), message)
  } else events.controlMessage(topic.toString('utf8', prefixLength, topic.length), message)
}
