// Certificates for tests, made by openssl in a folder of the test.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** @param {string} folder @param {string[]} args of `openssl req` */
function request(folder, args) {
  try {
    execFileSync(
      'openssl',
      ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', ...args],
      { cwd: folder, stdio: 'pipe' },
    )
  } catch (error) {
    if (error.code === 'ENOENT') throw new Error('openssl cannot be run (Debian: apt-get install openssl)')
    throw error
  }
}

/** A certificate with its key, in files and as text. */
export class Certificate {
  /** @param {string} folder @param {string} name of the files */
  constructor(folder, name) {
    this.folder = folder
    this.name = name
    this.file = join(folder, `${name}.pem`)
    this.keyFile = join(folder, `${name}.key`)
  }

  get pem() {
    return readFileSync(this.file, 'utf8')
  }

  get key() {
    return readFileSync(this.keyFile, 'utf8')
  }

  /**
   * As an authority, signs another one.
   * @param {string} name of it @param {string} for_ whom it is for: `IP:127.0.0.1`, `DNS:redis.example`
   * @returns {Certificate}
   */
  sign(name, for_) {
    const made = new Certificate(this.folder, name)
    request(this.folder, [
      ...['-CA', this.file, '-CAkey', this.keyFile, '-days', '2', '-subj', `/CN=${name}`],
      ...['-addext', `subjectAltName=${for_}`, '-addext', 'basicConstraints=CA:FALSE'],
      ...['-out', made.file, '-keyout', made.keyFile],
    ])
    return made
  }
}

/** @param {string} folder @param {string} name @returns {Certificate} signed by itself */
export function makeAuthority(folder, name) {
  const made = new Certificate(folder, name)
  request(folder, ['-days', '2', '-subj', `/CN=${name}`, '-out', made.file, '-keyout', made.keyFile])
  return made
}
