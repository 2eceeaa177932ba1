import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
// TypeScript 7 has no compiler API; the parser that vitest brings reads TypeScript, types included.
import { parseAst } from 'vitest/node'

/** The folder the repository's paths are relative to. */
export const root = fileURLToPath(new URL('../', import.meta.url))

/** A source file: its path from the root, with `/` on every system, and its text. */
export type Source = { path: string; text: string }

/** A node of the syntax tree (ESTree); `start` and `end` are offsets into the text. */
export type Node = { type: string; start: number; end: number; [field: string]: unknown }

/** One broken rule. `line` counts from 1. */
export type Violation = { path: string; line: number; sentence: string }

const skipped = new Set(['node_modules', 'dist', 'coverage'])

/** Every TypeScript file of the repository, in order of path. Hidden and generated folders are left out. */
export function readSources(directory: string = root): Source[] {
  return readdirSync(directory, { withFileTypes: true })
    .flatMap(entry => {
      if (entry.name.startsWith('.') || skipped.has(entry.name)) return []
      const file = join(directory, entry.name)
      if (entry.isDirectory()) return readSources(file)
      if (!/\.tsx?$/.test(entry.name)) return []
      return [{ path: relative(root, file).split(sep).join('/'), text: readFileSync(file, 'utf8') }]
    })
    .sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** Calls `see` with each node of a file and the node above it, in order of the text. Throws where the text does not parse. */
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

/** The line, counted from 1, on which the offset lies. */
export function lineOf(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length
}

/** Prints each violation as `file:line: sentence`, and makes the process end with 1 when there is one. */
export function report(violations: Violation[]): void {
  for (const { path, line, sentence } of violations) console.error(`${path}:${line}: ${sentence}`)
  if (violations.length > 0) process.exitCode = 1
}

/** Prints each one as a warning, which ends nothing. */
export function warn(warnings: Violation[]): void {
  for (const { path, line, sentence } of warnings) console.warn(`warning: ${path}:${line}: ${sentence}`)
}
