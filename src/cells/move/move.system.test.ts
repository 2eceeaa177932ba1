import { expect, it } from 'vitest'
import { setConnectable } from '../../../test/support/cells.ts'
import { runInProcess } from '../../../test/support/command.ts'
import type { Organization } from '../../../test/support/service.ts'
import { type CellName, useTwoCells } from '../../../test/support/two-cells.ts'
import { findOrganization } from '../../organizations/organizations.ts'
import { completeMove } from './complete-move.ts'
import { type MoveOptions, moveOrganization } from './move.ts'

const cells = useTwoCells({ KITH_LIMIT_REQUEST_MS: '4000' })
const { environment, cellOf, rowsIn, triggersIn, createFilled } = cells

/** A move waits for caches and deadlines, about 15 s. */
const testTimeoutMs = 120_000

/** Moves an organization that no process has cached, so that nothing has to be waited for. */
async function moveTo(to: CellName, { key }: Organization, options: Partial<MoveOptions> = {}): Promise<void> {
  const organization = (await findOrganization(cells.service.db, key))!
  await moveOrganization(organization, cellOf(organization.cell as CellName), cellOf(to), {
    first: cellOf('main').db,
    cacheMs: 0,
    signal: new AbortController().signal,
    report: () => {},
    ...options,
  })
}

it(
  'is undone when it is interrupted, and can go there and back later',
  async () => {
    const organization = await createFilled('calm')
    const before = await rowsIn('main', organization)
    const aborting = new AbortController()
    const report = (message: string) => {
      if (message === 'Copying entities.') aborting.abort(new Error('interrupted'))
    }
    await expect(moveTo('b', organization, { signal: aborting.signal, report })).rejects.toThrow('interrupted')
    expect(await rowsIn('b', organization)).toEqual({})
    expect(await rowsIn('main', organization)).toEqual(before)
    expect(await triggersIn('main', organization)).toEqual([])
    expect(await findOrganization(cells.service.db, 'calm')).toMatchObject({ cell: 'main', moving_to: null })
    await moveTo('b', organization)
    expect(await rowsIn('b', organization)).toEqual(before)
    await moveTo('main', organization)
    expect(await rowsIn('main', organization)).toEqual(before)
    expect(await findOrganization(cells.service.db, 'calm')).toMatchObject({ cell: 'main', moves: 2 })
  },
  testTimeoutMs,
)

it(
  'is completed by the service when its command dies after the decision',
  async () => {
    const organization = await createFilled('decided')
    const { send } = organization
    const { db } = cellOf('main')
    const dying = { ...db, transaction: () => Promise.reject(new Error('killed')) }
    await expect(moveTo('b', organization, { first: dying as typeof db })).rejects.toThrow('killed')
    // The directory in this process is outdated, so it sends the write to the old cell.
    const refused = await send('PATCH', '/v1/people/p1', { first_name: 'Late' })
    expect([refused.status, refused.headers.get('Retry-After')]).toEqual([503, '1'])
    const placement = (await findOrganization(cells.service.db, 'decided'))!
    const both = [0, 1].map(() => completeMove(db, placement, db, cellOf('b')))
    expect(await Promise.all(both)).toEqual([true, true])
    const found = (await findOrganization(cells.service.db, 'decided'))!
    expect(found).toMatchObject({ cell: 'b', moving_to: null, moves: 1 })
    cells.service.db.directory!.learn(found)
    expect((await send('PATCH', '/v1/people/p1', { first_name: 'Late' })).status).toBe(200)
    expect((await send('GET', '/v1/people/p1')).body.data.first_name).toBe('Late')
  },
  testTimeoutMs,
)

it(
  'loses nothing when the new cell vanishes, and says what to do',
  async () => {
    const organization = await createFilled('vanishing')
    const { send } = organization
    let refusing: Promise<void> | undefined
    const report = (message: string) => {
      if (message === 'Copying entities.') refusing = setConnectable(cells.databases.b.url, false)
    }
    await expect(moveTo('b', organization, { report })).rejects.toThrow(
      /It could not be undone: .* Nothing is lost\. Run the command again\.$/,
    )
    await refusing
    expect((await send('PATCH', '/v1/people/p1', { first_name: 'Safe' })).status).toBe(200)
    await setConnectable(cells.databases.b.url, true)
    const undone = await runInProcess(['org', 'move', 'vanishing', '--to', 'main'], environment)
    expect(undone.stderr).toBe(
      'The earlier move to the cell b has been undone.\nThe organization vanishing lives in the cell main.\n',
    )
    expect(await rowsIn('b', organization)).toEqual({})
    expect(await triggersIn('main', organization)).toEqual([])
  },
  testTimeoutMs,
)
