/** A configuration that cannot be used. The message has a line for each fault. */
export class ConfigError extends Error {
  /**
   * @param {readonly string[]} faults one line each, starting with the key
   * @param {readonly string[]} [warnings] what there was to say besides
   */
  constructor(faults, warnings = []) {
    super(faults.join('\n'))
    this.name = 'ConfigError'
    /** @type {readonly string[]} */
    this.faults = Object.freeze([...faults])
    /** @type {readonly string[]} */
    this.warnings = Object.freeze([...warnings])
  }
}

/** @typedef {(keys: string[], text: string) => void} Say a fault of several keys, told of the first one */

/** Faults and warnings gathered while a configuration is read. */
export class Report {
  /** @type {string[]} */
  faults = []
  /** @type {string[]} */
  warnings = []
  /** Keys whose value could not be read; rules over several keys say nothing about them. @type {Set<string>} */
  unread = new Set()

  /**
   * @param {string} label the key, variable or flag
   * @param {string} text
   */
  fault(label, text) {
    this.faults.push(`${label}: ${text}`)
  }

  /**
   * @param {string} label
   * @param {string} text
   */
  warn(label, text) {
    this.warnings.push(`${label}: ${text}`)
  }

  /**
   * Silent if one of the keys could not be read: that is told already.
   * @type {Say}
   */
  say = (keys, text) => {
    if (!keys.some(key => this.unread.has(key))) this.fault(keys[0], text)
  }
}
