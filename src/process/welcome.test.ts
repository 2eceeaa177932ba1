import { execFileSync } from 'node:child_process'
import { join, resolve } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { loadConfig } from './config.ts'
import { firstSteps } from './welcome.ts'

const checkout = join(import.meta.dirname, '../..')
const address = 'http://127.0.0.1:8080'

/** The lines to paste. */
const lines = (environment: Record<string, string>) => firstSteps(address, loadConfig(environment)).first_steps

/** The settings and arguments that a shell passes to the token command, for each environment. */
function tokenCommands(environments: Record<string, string>[]): string[][] {
  const commands = environments.map(environment => lines(environment)[0]!.replace(/^TOKEN=\$\((.*)\)$/, '$1'))
  // A shell function replaces npm and prints its arguments.
  const script = [`npm() { printf '%s\\0' "\${KITH_DATA_DIR-}" "$@"; printf '\\n'; }`, ...commands].join('\n')
  const output = execFileSync('sh', ['-c', script], { encoding: 'utf8', cwd: '/' })
  return output
    .split('\n')
    .slice(0, -1)
    .map(line => line.split('\0').slice(0, -1))
}

const tokenCommand = (environment: Record<string, string>) => tokenCommands([environment])[0]

const words = [
  '--prefix',
  checkout,
  'run',
  '-s',
  'kith',
  '--',
  'token',
  '--org',
  'default',
  '--scope',
  'people:read people:write',
]

it('has three lines to paste, which send requests to the address', () => {
  const [token, patch, read, ...more] = lines({})
  expect(more).toEqual([])
  expect(token).toMatch(/^TOKEN=\$\(.*\)$/)
  expect(patch).toContain(`-X PATCH ${address}/v1/people/first `)
  expect(read?.endsWith(` ${address}/v1/people/first`)).toBe(true)
})

it('needs no settings for the default data folder', () => {
  expect(tokenCommand({})).toEqual(['', ...words])
})

it('passes any other data folder through the shell', () => {
  const name = fc.string({ unit: 'grapheme', minLength: 1 }).filter(name => !/[\0\r\n]/.test(name))
  // One shell for 25 names, because a start takes longer than its work.
  fc.assert(
    fc.property(fc.array(name, { minLength: 25, maxLength: 25 }), names => {
      const folders = names.map(name => resolve('/data', `of ${name}`))
      const environments = folders.map(folder => ({ KITH_DATA_DIR: folder }))
      expect(tokenCommands(environments)).toEqual(folders.map(folder => [folder, ...words]))
    }),
    { numRuns: 2 },
  )
})

it('uses the absolute path of a relative data folder, because the command runs in another folder', () => {
  expect(tokenCommand({ KITH_DATA_DIR: '../data' })).toEqual([resolve('../data'), ...words])
})

it('does not print DATABASE_URL, which is a secret, but says that it must be set', () => {
  const environment = { DATABASE_URL: 'postgresql://kith:hunter2@database.example/kith' }
  const { hint, first_steps } = firstSteps(address, loadConfig(environment))
  const text = [hint, ...first_steps].join('\n')
  expect(text).not.toContain('hunter2')
  expect(text).not.toContain('database.example')
  expect(hint).toContain('DATABASE_URL')
  expect(tokenCommand(environment)).toEqual(['', ...words])
})
