import { symlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serverVersion } from './database.ts'
import type { BenchOptions } from './figures.ts'
import { runProgram } from './measure.ts'
import { indexesOf } from './populate.ts'
import { type Pair, printComparison, printMachine } from './report.ts'
import type { BenchRow } from './rows.ts'
import { type BenchTarget, measureService, withPostgres } from './run.ts'

const checkout = fileURLToPath(new URL('..', import.meta.url))
const git = (...words: string[]) => runProgram('git', ['-C', checkout, ...words], process.env)

/** The first seconds of a process fill caches and compile code, so they do not count. */
const warmUpSeconds = 3

type Comparison = { row: BenchRow; rounds: readonly Pair[]; ratio: number }

/**
 * Measures another revision and the working tree in alternation, each on its own database in one PostgreSQL. Each round has processes of
 * its own: two processes of the same code differ by up to a third for as long as they run.
 */
export async function compareRevisions(revision: string, options: BenchOptions): Promise<Comparison[]> {
  const commit = (await git('rev-parse', '--verify', `${revision}^{commit}`)).trim()
  return withPostgres(options, async ({ folder, addTarget, acquire }) => {
    const worktree = await acquire(() => addWorktree(join(folder, 'other'), commit), removeWorktree)
    await installAt(worktree, commit)
    const [before, after] = [await addTarget(worktree, 'before'), await addTarget(checkout, 'after')]
    printMachine(options, await indexesOf(after.service), await serverVersion(after.service))
    const pairs = options.rows.map(row => ({ row, rounds: [] as Pair[] }))
    for (let round = 0; round < options.rounds; round += 1) {
      for (const target of [before, after]) await target.restart()
      for (const { row, rounds } of pairs) rounds.push(await measurePair(row, before, after, round % 2 === 1))
    }
    return pairs.map(({ row, rounds }) => ({ row, rounds, ratio: printComparison(row, rounds, commit) }))
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

/** Measures a row on both sides, one right after the other. */
async function measurePair(
  row: BenchRow,
  before: BenchTarget,
  after: BenchTarget,
  isAfterFirst: boolean,
): Promise<Pair> {
  for (const target of [before, after]) await measureService(target, row, warmUpSeconds)
  if (isAfterFirst) {
    const second = await measureService(after, row)
    return { before: await measureService(before, row), after: second }
  }
  return { before: await measureService(before, row), after: await measureService(after, row) }
}
