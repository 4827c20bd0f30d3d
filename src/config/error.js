/** The message has one line per fault. */
export class ConfigError extends Error {
  /** @param {readonly string[]} faults each starts with its key @param {readonly string[]} [warnings] */
  constructor(faults, warnings = []) {
    super(faults.join('\n'))
    this.name = 'ConfigError'
    /** @type {readonly string[]} */
    this.faults = Object.freeze([...faults])
    /** @type {readonly string[]} */
    this.warnings = Object.freeze([...warnings])
  }
}

/** @typedef {(keys: string[], text: string) => void} Refuse labels a fault with the first key */

export class Report {
  /** @type {string[]} */
  faults = []
  /** @type {string[]} */
  warnings = []
  /** Keys with unreadable values. @type {Set<string>} */
  unread = new Set()

  /** @param {string} label key, variable or flag @param {string} text */
  fault(label, text) {
    this.faults.push(`${label}: ${text}`)
  }

  /** @param {string} label @param {string} text */
  warn(label, text) {
    this.warnings.push(`${label}: ${text}`)
  }

  /** Reports a fault, unless one of the keys is unreadable: that is reported already. @type {Refuse} */
  refuse = (keys, text) => {
    if (!keys.some(key => this.unread.has(key))) this.fault(keys[0], text)
  }
}
