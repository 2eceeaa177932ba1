import { execFile, spawnSync } from 'node:child_process'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { compileCache, runInProcess } from '../test/support/command.ts'

const program = fileURLToPath(new URL('./main.ts', import.meta.url))

let folder: string
let bashScript: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kith-completion-'))
  await symlink(program, join(folder, 'kith'))
  await writeFile(join(folder, 'people one.csv'), '')
  bashScript = (await printScript('bash')).stdout
})
afterAll(() => rm(folder, { recursive: true }))

const printScript = (shell: string) => runInProcess(['completion', shell], {})

/** The completions that a real bash offers with the script, for a line with the cursor at its end. */
async function completeInBash(line: string): Promise<string[]> {
  const script = `
    ${bashScript}
    COMP_WORDS=(${line}); [[ "$LINE" == *' ' ]] && COMP_WORDS+=('')
    COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
    _kith
    printf '%s\\n' "\${COMPREPLY[@]}"`
  const env = { PATH: `${folder}:${dirname(process.execPath)}:/usr/bin:/bin`, LINE: line, ...compileCache }
  const { stdout } = await promisify(execFile)('bash', ['--noprofile', '--norc', '-c', script], { cwd: folder, env })
  return stdout.split('\n').filter(Boolean)
}

it.each([
  ['kith dos', ['dossier']],
  ['kith org ', ['create', 'list', 'delete', 'help']],
  ["kith import people --format '=' c", ['csv']],
  ['kith import people peo', ['people one.csv']],
  ['kith codegen --output ', ['kith', 'people one.csv']],
  ['kith nonsense ', []],
])('bash completes "%s" with %j', async (line, expected) => {
  expect((await completeInBash(line)).toSorted()).toEqual(expected.toSorted())
})

const fishCompletions = [
  ['kith dos', ['dossier']],
  ['kith org ', ['create', 'list', 'delete', 'help']],
  ['kith import people --format=c', ['--format=csv']],
  ['kith import people peo', ['people one.csv']],
  ['kith codegen --output=peo', ['--output=people one.csv']],
  ['kith nonsense ', []],
] as const

it.runIf(spawnSync('fish', ['--version']).status === 0).each(fishCompletions)(
  'fish completes "%s" with %j',
  async (line, expected) => {
    const script = `kith completion fish | source; complete -C '${line}'`
    const env = { PATH: `${folder}:${dirname(process.execPath)}:/usr/bin:/bin`, HOME: folder }
    const { stdout } = await promisify(execFile)('fish', ['--no-config', '-c', script], { cwd: folder, env })
    const values = stdout.split('\n').map(candidate => candidate.split('\t')[0]!)
    expect(values.filter(Boolean).toSorted()).toEqual(expected.toSorted())
  },
)
