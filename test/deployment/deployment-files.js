// The parsed files of examples/deployment and the Dockerfile.

import { readFileSync } from 'node:fs'
import { parse, parseAllDocuments } from 'yaml'

const root = new URL('../../', import.meta.url)

/** @param {string} path from the root of the repository @returns {string} */
export const read = path => readFileSync(new URL(path, root), 'utf8')

/** @param {string} path @returns {any} content of a YAML file, with its merges done */
export const readYaml = path => parse(read(path), { merge: true })

/** @returns {any[]} objects of the Kubernetes manifests */
export const manifests = () =>
  parseAllDocuments(read('examples/deployment/kubernetes.yaml')).map(document => document.toJS())

/** @param {string} text @returns {string} its last stage, a line for each instruction */
const lastStage = text =>
  /** @type {string} */ (
    text
      .replace(/\\\n\s*/g, '')
      .split(/^FROM /m)
      .at(-1)
  )

/** The instructions of the Dockerfile. */
export function image() {
  const text = read('Dockerfile')
  const last = lastStage(text)
  const of = name => new RegExp(`^${name} (.*)$`, 'm').exec(last)?.[1] ?? ''
  return {
    /** Variables of each container. @type {Record<string, string>} */
    env: Object.fromEntries([...of('ENV').matchAll(/(\S+?)=(\S+)/g)].map(([, name, value]) => [name, value])),
    /** Command of the health check. @type {string[]} */
    healthcheck: JSON.parse(/^HEALTHCHECK .*? CMD (.*)$/m.exec(last)?.[1] ?? 'null'),
    entrypoint: JSON.parse(of('ENTRYPOINT')),
    user: of('USER'),
    stopSignal: of('STOPSIGNAL'),
    ports: of('EXPOSE').split(' ').map(Number),
    /** Shell command that removes the files for other platforms. */
    prune: /(find node_modules.*-delete)/.exec(text.replace(/\\\n\s*/g, ''))?.[1] ?? '',
  }
}

/** @param {string} text `45s`, `45` @returns {number} seconds */
export const seconds = text => Number(/^(\d+)s?$/.exec(text)?.[1])
