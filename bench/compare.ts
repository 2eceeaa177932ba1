import { symlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serverVersion } from './database.ts'
import { type BenchOptions, medianSide, type Side } from './figures.ts'
import { runProgram } from './measure.ts'
import { indexesOf } from './populate.ts'
import { printComparison, printMachine } from './report.ts'
import type { BenchRow } from './rows.ts'
import { type BenchTarget, measureService, withPostgres } from './run.ts'

const checkout = fileURLToPath(new URL('..', import.meta.url))
const git = (...words: string[]) => runProgram('git', ['-C', checkout, ...words], process.env)

type Comparison = { row: BenchRow; before: Side; after: Side; ratio: number }

/** Measures another revision and the working tree in alternation, each on its own database in one PostgreSQL. */
export async function compareRevisions(revision: string, options: BenchOptions): Promise<Comparison[]> {
  const commit = (await git('rev-parse', '--verify', `${revision}^{commit}`)).trim()
  return withPostgres(options, async ({ folder, addTarget, acquire }) => {
    const worktree = await acquire(() => addWorktree(join(folder, 'other'), commit), removeWorktree)
    await installAt(worktree, commit)
    const [before, after] = [await addTarget(worktree, 'before'), await addTarget(checkout, 'after')]
    printMachine(options, await indexesOf(after.service), await serverVersion(after.service))
    const comparisons: Comparison[] = []
    for (const row of options.rows) comparisons.push(await compareRow(row, before, after, commit, options.rounds))
    return comparisons
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
  // It may be a link to the packages of this checkout. The removal must not follow it.
  await unlink(join(folder, 'node_modules')).catch(() => {})
  await git('worktree', 'remove', '--force', folder)
}

/**
 * Links the packages of the working tree if the lock file is the same. Otherwise it installs the revision's packages.
 */
async function installAt(folder: string, commit: string) {
  const same = (await git('diff', '--stat', commit, '--', 'package-lock.json')) === ''
  if (same) await symlink(join(checkout, 'node_modules'), join(folder, 'node_modules'))
  else await runProgram('npm', ['--prefix', folder, 'ci', '--silent'], process.env)
}

async function compareRow(row: BenchRow, before: BenchTarget, after: BenchTarget, commit: string, rounds: number) {
  const sides: [Side[], Side[]] = [[], []]
  for (const target of [before, after]) await measureService(target, row, 2)
  for (let round = 0; round < rounds; round += 1) {
    sides[0].push(await measureService(before, row))
    sides[1].push(await measureService(after, row))
  }
  const [one, other] = [medianSide(sides[0]), medianSide(sides[1])]
  return { row, before: one, after: other, ratio: printComparison(row, one, other, commit) }
}
