import { readdirSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import * as published from '../index.ts'

/** A runnable example of the documentation. `location` is its file and line, counted from 1. */
export type Example = { location: string; code: string }

const folder = fileURLToPath(new URL('..', import.meta.url))

/** The ```ts blocks of the client's doc comments and of its README. */
export function readExamples(): Example[] {
  const sources = readdirSync(`${folder}/src`).map(name => `src/${name}`)
  return ['README.md', ...sources.sort()].flatMap(file => examplesIn(file, readFileSync(folder + file, 'utf8')))
}

/** All ```ts blocks of a document as one example. */
export function readDocument(path: string): Example {
  const blocks = examplesIn(path, readFileSync(`${folder}/../${path}`, 'utf8'))
  return { location: path, code: blocks.map(({ code }) => code).join('\n') }
}

function examplesIn(file: string, text: string): Example[] {
  return [...text.matchAll(/^( *(?:\* )?)```ts\n([\s\S]*?)^\1```$/gm)].map(
    ({ 1: margin = '', 2: block = '', index }) => {
      const lines = block.split('\n').map(line => line.slice(margin.length))
      return { location: `${file}:${text.slice(0, index).split('\n').length}`, code: lines.join('\n') }
    },
  )
}

/** The example as a module. `client` is declared if the example does not create it. */
export function moduleOf({ code }: Example): string {
  const declared = /^const client\b/m.test(code) ? '' : `declare const client: import('@kith/client').Client\n`
  return `${declared}${code}\nexport {}\n`
}

/** Runs an example. Returns the lines that it printed, and the lines that its comments expect. */
export async function runExample({ code }: Example, client: published.Client, environment: Record<string, string>) {
  const printed: string[] = []
  const expected = [...code.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map(([, comment]) => comment!)
  const stripped = stripTypeScriptTypes(code)
    .replace(
      /^import (\{.*\}) from '@kith\/client'/gm,
      (_, names: string) => `const ${names.replaceAll(' as ', ': ')} = published`,
    )
    .replaceAll(/^export /gm, '')
  const run = new Function('client', 'published', 'console', 'process', `return (async () => { ${stripped} })()`)
  const log = (...values: unknown[]) =>
    void printed.push(values.map(value => (typeof value === 'string' ? value : inspect(value))).join(' '))
  await run(client, published, { log }, { env: environment })
  return { printed, expected }
}
