import { setTimeout as pause } from 'node:timers/promises'
import { cacheTimes } from '../src/auth/organizations.ts'
import { completeMove } from '../src/cells/move/complete-move.ts'
import { deleteLeftovers, type MoveCell, moveOrganization, undoMove, withCommandLock } from '../src/cells/move/move.ts'
import { findOrganization, firstCellName, type Organization } from '../src/organizations/organizations.ts'
import type { Session } from './session.ts'

type MoveRequest = { key: string; to: string; signal: AbortSignal; report(message: string): void }

/** `moved` is false if the organization was there already. */
export type MoveOutcome = { moved: boolean }

/** A process may have read the directory just before the move began. */
const cacheMarginMs = 1_000
/** A request ends its statements a moment after its deadline. */
const requestMarginMs = 2_000

/**
 * Moves an organization to the cell `to`. First completes or undoes a move whose command was killed. At the end, deletes the rows in the
 * cell that it has left. Throws an Error with one sentence on what has happened.
 */
export async function move({ config, db, cells }: Session, request: MoveRequest): Promise<MoveOutcome> {
  const { key, to, signal, report } = request
  const cellOf = async (name: string): Promise<MoveCell> => ({ name, db: await cells.open(name) })
  const readOrganization = async (): Promise<Organization> => {
    const organization = await findOrganization(db, key)
    if (!organization) throw new Error(`There is no organization ${JSON.stringify(key)}.`)
    return organization
  }

  /** Completes or undoes an earlier move. */
  async function settle(organization: Organization): Promise<void> {
    if (organization.moving_to === null) return
    const [source, target] = [await cellOf(organization.cell), await cellOf(organization.moving_to)]
    const isDecided = await undoMove(organization, source, target, db)
    if (isDecided) await completeMove(db, organization, source.db, target)
    report(`The earlier move to the cell ${target.name} has been ${isDecided ? 'completed' : 'undone'}.`)
  }

  /** Deletes the rows in the cells in which the organization does not live. */
  async function clean(organization: Organization, left?: string): Promise<void> {
    for (const name of cells.names.filter(each => each !== organization.cell))
      try {
        if (await deleteLeftovers(organization, await cellOf(name), name === firstCellName, signal))
          report(`Deleted its rows in the cell ${name}.`)
      } catch (error) {
        if (name === left || signal.aborted) throw error
        report((error as Error).message)
      }
  }

  const target = await cellOf(to)
  return withCommandLock(db, await readOrganization(), async () => {
    await settle(await readOrganization())
    const organization = await readOrganization()
    const requestMs = config.limits.requestMs + requestMarginMs
    const moved = organization.cell !== to
    if (moved) {
      const cacheMs = cacheTimes.maxAgeMs + cacheMarginMs
      await moveOrganization(organization, await cellOf(organization.cell), target, {
        first: db,
        cacheMs,
        signal,
        report,
      })
    } else report(`The organization ${key} lives in the cell ${to}.`)
    try {
      if (moved) await pause(requestMs, undefined, { signal })
      await clean(await readOrganization(), organization.cell)
    } catch (error) {
      const reason = signal.aborted ? '' : ` ${(error as Error).message}`
      throw new Error(
        `The organization ${key} lives in the cell ${to}, but rows of it remain in another one.${reason} Run the command again to delete them.`,
        { cause: error },
      )
    }
    return { moved }
  })
}
