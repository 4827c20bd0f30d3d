// Writes the types of the package's entries to types/, made by TypeScript from their JSDoc: `npm pack` runs it.
// Only files that an entry's types name are written, each as FILE.d.ts below types/.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const root = fileURLToPath(new URL('..', import.meta.url))
const out = join(root, 'types')

/** @param {ts.Diagnostic[]} diagnostics @throws {Error} with all of them */
function check(diagnostics) {
  if (diagnostics.length === 0) return
  const host = { getCanonicalFileName: String, getCurrentDirectory: () => root, getNewLine: () => '\n' }
  throw new Error(ts.formatDiagnostics(diagnostics, host))
}

/**
 * @param {string} config name of a tsconfig.json
 * @returns {ts.CompilerOptions}
 */
function compilerOptions(config) {
  const { options, errors } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(join(root, config), ts.sys.readFile).config,
    ts.sys,
    dirname(join(root, config)),
  )
  check(errors)
  return {
    ...options,
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    rootDir: root,
    outDir: out,
  }
}

/** Classes whose instances the gateway makes: programs need no constructors, and these name half of the sources. */
const MADE_BY_GATEWAY = ['src/hooks/events.js', 'src/primary/gateway.js']
const CONSTRUCTOR = /^ {4}(?:\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n {4})?constructor\([\s\S]*?\);\n/gm
const IMPORT = /^import (?:type )?\{ (\w+) \} from .*\n/gm

/** @param {string} text of a .d.ts file @returns {string} */
function withoutConstructors(text) {
  const rest = text.replace(CONSTRUCTOR, '')
  const uses = (/** @type {string} */ name) => rest.split(new RegExp(`\\b${name}\\b`)).length - 1
  return rest.replace(IMPORT, (line, name) => (uses(name) > 1 ? line : ''))
}

/** @param {string[]} entries paths from the root @param {string} config */
function write(entries, config) {
  const files = entries.map(entry => join(root, entry))
  const program = ts.createProgram(files, compilerOptions(config))
  const queue = new Set(files)
  for (const file of queue) {
    const source = program.getSourceFile(file)
    if (source === undefined) throw new Error(`${relative(root, file)}: TypeScript does not know this file`)
    const { diagnostics } = program.emit(
      source,
      (path, emitted) => {
        const text = MADE_BY_GATEWAY.includes(relative(root, file)) ? withoutConstructors(emitted) : emitted
        mkdirSync(dirname(path), { recursive: true })
        writeFileSync(path, text)
        for (const [, target] of text.matchAll(/\b(?:from |import\()["'](\.[^"']+)["']/g))
          queue.add(resolve(dirname(file), target))
      },
      undefined,
      true,
    )
    check([...diagnostics])
  }
}

rmSync(out, { recursive: true, force: true })
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const entries = Object.values(exports).flatMap(entry => (typeof entry === 'string' ? [] : [entry.default]))
write(
  entries.filter(entry => !entry.startsWith('./client/')),
  'tsconfig.json',
)
write(
  entries.filter(entry => entry.startsWith('./client/')),
  'client/tsconfig.json',
)
