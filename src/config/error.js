/** An unusable configuration. The message has a line for each fault. */
export class ConfigError extends Error {
  /** @param {readonly string[]} faults one line each, starting with the key @param {readonly string[]} [warnings] */
  constructor(faults, warnings = []) {
    super(faults.join('\n'))
    this.name = 'ConfigError'
    /** @type {readonly string[]} */
    this.faults = Object.freeze([...faults])
    /** @type {readonly string[]} */
    this.warnings = Object.freeze([...warnings])
  }
}

/** @typedef {(keys: string[], text: string) => void} Refuse adds a fault of several keys, labelled with the first */

export class Report {
  /** @type {string[]} */
  faults = []
  /** @type {string[]} */
  warnings = []
  /** Keys with unreadable values; rules over several keys skip them. @type {Set<string>} */
  unread = new Set()

  /** @param {string} label key, variable or flag @param {string} text */
  fault(label, text) {
    this.faults.push(`${label}: ${text}`)
  }

  /** @param {string} label @param {string} text */
  warn(label, text) {
    this.warnings.push(`${label}: ${text}`)
  }

  /** Adds a fault of several keys, unless one of them is unreadable: that fault is reported already. @type {Refuse} */
  refuse = (keys, text) => {
    if (!keys.some(key => this.unread.has(key))) this.fault(keys[0], text)
  }
}
