import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../scripts/source.ts'
import { runInProcess } from './support/command.ts'

type Help = { subcommands: Set<string>; options: Set<string>; takesArguments: boolean }

const helps = new Map<string, Promise<Help>>()

/** The subcommands and options that the help of a command lists. */
function helpOf(command: readonly string[]): Promise<Help> {
  const key = command.join(' ')
  const reading = helps.get(key) ?? readHelp(command)
  helps.set(key, reading)
  return reading
}

async function readHelp(command: readonly string[]): Promise<Help> {
  const { code, stdout } = await runInProcess([...command, '--help'], {})
  expect([command, code]).toEqual([command, 0])
  const [, listed = ''] = stdout.split(/^Commands:$/m)
  return {
    subcommands: new Set([...listed.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name]) => name!)),
    options: new Set([...stdout.matchAll(/(?<![\w-])(--?[a-z][a-z-]*)/g)].map(([, name]) => name!)),
    takesArguments: /^Usage: .* </.test(stdout),
  }
}

/** The lines of the code blocks of a page, with the lines that a backslash continues. Python has a variable named kith. */
function codeLines(page: string): string[] {
  let fence: string | undefined
  const lines = readFileSync(join(root, page), 'utf8').replaceAll('\\\n', ' ').split('\n')
  return lines.filter(line => {
    const [, language] = /^\s*```(.*)/.exec(line) ?? []
    if (language !== undefined) fence = fence === undefined ? language : undefined
    return fence === undefined ? line.startsWith('    ') : fence !== 'python'
  })
}

/** The words after each `kith` of a line of the shell, up to the end of the command. */
function kithCommands(line: string): string[][] {
  const unquoted = line.replace(/(?<!\S)#.*$/, '').replaceAll(/'[^']*'|"[^"]*"/g, 'text')
  return [...unquoted.matchAll(/(?:^|[|;&(]|npx|--)\s*kith((?: [^|;&()<>\s]+)+)/g)].map(([, words]) =>
    words!.trim().split(/\s+/),
  )
}

const pages = globSync(['README.md', 'docs/*.md'], { cwd: root }).sort()

describe('the commands of the documents', () => {
  it.each(pages)('%s names commands and options that kith has', async page => {
    const unknown: string[] = []
    for (const line of codeLines(page))
      for (const words of kithCommands(line)) {
        const command: string[] = []
        for (const word of words) if ((await helpOf(command)).subcommands.has(word)) command.push(word)
        const { options, subcommands, takesArguments } = await helpOf(command)
        const isUnknown = subcommands.size > 0 && !takesArguments && /^[a-z]/.test(words[command.length] ?? '')
        if (command.length === 0 || isUnknown) unknown.push(line)
        for (const word of words)
          if (/^--?[a-z]/.test(word) && !options.has(word.split('=')[0]!)) unknown.push(`${word}: ${line}`)
      }
    expect(unknown).toEqual([])
  })
})
