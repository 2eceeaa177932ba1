import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
// The parser that vitest includes parses TypeScript with types. TypeScript's own API is unstable, and starts a process.
import { parseAst } from 'vitest/node'

/** The root folder of the repository. */
export const root = fileURLToPath(new URL('../', import.meta.url))

/** A source file: its path from the root, with `/` on every system, and its text. */
export type Source = { path: string; text: string }

/** A node of the syntax tree (ESTree); `start` and `end` are offsets into the text. */
export type Node = { type: string; start: number; end: number; [field: string]: unknown }

/** A broken rule. `line` counts from 1. */
export type Violation = { path: string; line: number; message: string }

const skippedFolders = new Set(['node_modules', 'dist', 'coverage'])

/** Reads every TypeScript file of the repository, in order of path, without hidden and generated folders. */
export function readSources(directory: string = root): Source[] {
  return readdirSync(directory, { withFileTypes: true })
    .flatMap(entry => {
      if (entry.name.startsWith('.') || skippedFolders.has(entry.name)) return []
      const file = join(directory, entry.name)
      if (entry.isDirectory()) return readSources(file)
      if (!/\.tsx?$/.test(entry.name)) return []
      return [{ path: relative(root, file).split(sep).join('/'), text: readFileSync(file, 'utf8') }]
    })
    .sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** Calls `see` with each node of a file and its parent, in the order of the text. Throws if the text cannot be parsed. */
export function visit({ path, text }: Source, see: (node: Node, parent: Node | undefined) => void): void {
  const walk = (value: unknown, parent: Node | undefined): void => {
    if (Array.isArray(value)) for (const item of value) walk(item, parent)
    if (!isNode(value)) return
    see(value, parent)
    for (const child of Object.values(value)) walk(child, value)
  }
  walk(parseAst(text, { lang: path.endsWith('x') ? 'tsx' : 'ts' }), undefined)
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}

/** Returns the line of an offset, counted from 1. */
export function lineOf(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length
}

/** Prints each violation as `file:line: message`. The process exits with 1 if there is one. */
export function report(violations: Violation[]): void {
  for (const { path, line, message } of violations) console.error(`${path}:${line}: ${message}`)
  if (violations.length > 0) process.exitCode = 1
}

/** Prints each violation as a warning. The exit code does not change. */
export function warn(warnings: Violation[]): void {
  for (const { path, line, message } of warnings) console.warn(`warning: ${path}:${line}: ${message}`)
}
