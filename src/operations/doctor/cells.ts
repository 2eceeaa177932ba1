import type { CellAddress } from '../../cells/prepare.ts'
import { checkCell } from '../../cells/prepare.ts'
import { listMovesSql } from '../../cells/sql.ts'
import type { Config } from '../../config.ts'
import { type Database, openDatabase } from '../../db/db.ts'
import {
  firstCellName,
  listOrganizations,
  listResidents,
  type Organization,
} from '../../organizations/organizations.ts'
import { checkBackup, checkFollowers, checkTransactions, checkWebhooks, hasTable } from './database.ts'
import { type OrganizationFinding, ok, runCheck, warning, wrong } from './finding.ts'

const statementTimeoutMs = 10_000

/**
 * Checks each further cell: that its address leads to it, its tables, followers and webhooks, and that every organization has its rows
 * where the directory says. There are no findings if there is one cell.
 */
export async function checkCells(first: Database, { cells }: Config): Promise<OrganizationFinding[]> {
  if (!(await hasTable(first, 'this_cell'))) return []
  const organizations = await listOrganizations(first)
  const known = new Set([firstCellName, ...cells.map(({ name }) => name)])
  const unknown = organizations.filter(({ cell }) => !known.has(cell))
  const findings = unknown.map(({ key, cell }) =>
    wrong(
      'cells',
      `the organization ${key} lives in the cell ${cell}, which is not known`,
      'Name the cell in KITH_CELLS.',
      key,
    ),
  )
  if (cells.length > 0) findings.push(...(await checkResidents(first, firstCellName, organizations)))
  const advice = 'Check its address in KITH_CELLS, and that its server runs. Its organizations get 503 until then.'
  for (const cell of cells) findings.push(...(await runCheck('cells', advice, () => examineCell(cell, organizations))))
  return findings
}

async function examineCell({ name, url }: CellAddress, organizations: Organization[]): Promise<OrganizationFinding[]> {
  const db = openDatabase(url, { connections: 1, statementTimeoutMs, application_name: 'kith doctor' })
  try {
    await checkCell(name, db)
    const residents = organizations.filter(({ cell }) => cell === name).length
    const found = [
      ...(await checkBackup(db, { databaseUrl: url })),
      ...(await checkTransactions(db)),
      ...(await checkFollowers(db)),
      ...(await checkWebhooks(db)),
    ]
    return [
      ok(
        'cells',
        `the cell ${name} responds; it has ${residents} ${residents === 1 ? 'organization' : 'organizations'}`,
      ),
      ...(await checkResidents(db, name, organizations)),
      ...found
        .filter(({ verdict }) => verdict !== 'ok')
        .map(finding => ({ ...finding, message: `${finding.message} (cell ${name})` })),
    ]
  } finally {
    await db.close()
  }
}

/** Names organizations that the directory places in a cell that has no rows of them, and rows that the directory places elsewhere. */
async function checkResidents(
  db: Database,
  name: string,
  organizations: Organization[],
): Promise<OrganizationFinding[]> {
  const residents = new Set((await listResidents(db)).map(({ id }) => id))
  const missing = organizations.filter(({ id, cell }) => cell === name && !residents.has(id))
  const leftovers = organizations.filter(({ id, cell }) => cell !== name && residents.has(id))
  const moves = await db.query<{ organization_id: number; moved_to: string }>(listMovesSql, [])
  return [
    ...moves.map(({ organization_id, moved_to }) => {
      const key = organizations.find(({ id }) => id === organization_id)?.key ?? `${organization_id}`
      return warning(
        'cells',
        `a move of the organization ${key} from the cell ${name} to ${moved_to} goes on, or was interrupted`,
        `If no command moves it, run kith org move ${key} --to ${moved_to} again.`,
        key,
      )
    }),
    ...missing.map(({ key }) =>
      wrong('cells', `the cell ${name} has no rows of its organization ${key}`, 'Restore the cell from a backup.', key),
    ),
    ...leftovers.map(({ key, cell }) =>
      warning(
        'cells',
        `the cell ${name} has rows of the organization ${key}, which lives in the cell ${cell}`,
        'kith does not read them. Delete them when nothing moves or restores the organization any more.',
        key,
      ),
    ),
  ]
}
