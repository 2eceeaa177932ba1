import { symlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serverVersion } from './database.ts'
import { type BenchOptions, middle, type Side } from './figures.ts'
import { runProgram } from './measure.ts'
import { indexesOf } from './populate.ts'
import { printComparison, printMachine } from './report.ts'
import type { BenchRow } from './rows.ts'
import { askService, inTheatre, type Theatre } from './run.ts'

const checkout = fileURLToPath(new URL('..', import.meta.url))
const git = (...words: string[]) => runProgram('git', ['-C', checkout, ...words], process.env)

type Comparison = { row: BenchRow; before: Side; after: Side; ratio: number }

/** Measures another revision and the working tree in alternation, each on a database of its own in one PostgreSQL. */
export async function compareRevisions(revision: string, options: BenchOptions): Promise<Comparison[]> {
  const commit = (await git('rev-parse', '--verify', `${revision}^{commit}`)).trim()
  return inTheatre(options, async ({ folder, enter, hold }) => {
    const other = await hold(() => addWorktree(join(folder, 'other'), commit), removeWorktree)
    await installAt(other, commit)
    const [before, after] = [await enter(other, 'before'), await enter(checkout, 'after')]
    printMachine(options, await indexesOf(after.service), await serverVersion(after.service))
    const found: Comparison[] = []
    for (const row of options.rows) found.push(await compareRow(row, before, after, commit, options.rounds))
    return found
  })
}

async function addWorktree(folder: string, commit: string): Promise<string> {
  try {
    await git('worktree', 'add', '--detach', folder, commit)
    return folder
  } catch (error) {
    await removeWorktree(folder).catch(() => {})
    throw error
  }
}

async function removeWorktree(folder: string) {
  // It may be a link to the packages of this checkout: nothing is to follow it.
  await unlink(join(folder, 'node_modules')).catch(() => {})
  await git('worktree', 'remove', '--force', folder)
}

/** The packages of the working tree where the lock file is the same, else its own. */
async function installAt(folder: string, commit: string) {
  const same = (await git('diff', '--stat', commit, '--', 'package-lock.json')) === ''
  if (same) await symlink(join(checkout, 'node_modules'), join(folder, 'node_modules'))
  else await runProgram('npm', ['--prefix', folder, 'ci', '--silent'], process.env)
}

async function compareRow(row: BenchRow, before: Theatre, after: Theatre, commit: string, rounds: number) {
  const sides: [Side[], Side[]] = [[], []]
  for (const theatre of [before, after]) await askService(theatre, row, 2)
  for (let round = 0; round < rounds; round += 1) {
    sides[0].push(await askService(before, row))
    sides[1].push(await askService(after, row))
  }
  const [one, other] = [middle(sides[0]), middle(sides[1])]
  return { row, before: one, after: other, ratio: printComparison(row, one, other, commit) }
}
