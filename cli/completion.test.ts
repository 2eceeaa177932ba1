import { expect, it } from 'vitest'
import { runInProcess } from '../test/support/command.ts'

it.each([
  [['im'], ['import', 'imports']],
  [
    ['org', ''],
    ['create', 'list', 'delete', 'help'],
  ],
  [
    ['token', '--s'],
    ['--scope', '--subject'],
  ],
  [['import', 'people', '--pre'], ['--prefix']],
  [['import', 'people', '--create'], ['--create-only']],
  [
    ['import', 'people', '--format', ''],
    ['ndjson', 'csv'],
  ],
  // Bash splits --format=c into three words.
  [['import', 'people', '--format', '=', 'c'], ['csv']],
  [['import', 'people', '--format=c'], ['csv']],
  [
    ['completion', ''],
    ['bash', 'zsh', 'fish'],
  ],
  // The shell completes names of files itself.
  [['restore', 'peo'], [':files']],
  [['import', 'people', 'peo'], [':files']],
  [['codegen', '--output', ''], [':files']],
  [['token', '--org', ''], []],
  [['nonsense', ''], []],
])('completes %j with %j', async (words, expected) => {
  const { stdout } = await runInProcess(['complete', '--json', '--', ...words], {})
  expect((JSON.parse(stdout) as { value: string }[]).map(({ value }) => value).toSorted()).toEqual(expected.toSorted())
})

it.each(['bash', 'zsh', 'fish'])('prints a script for %s', async shell => {
  const { code, stdout, stderr } = await runInProcess(['completion', shell], {})
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain('kith complete --')
})
