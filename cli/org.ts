import { contextOf } from '../src/db/context.ts'
import type { Database } from '../src/db/db.ts'
import { deleteOrganization, requireDeletable } from '../src/organizations/deletion.ts'
import {
  createOrganization,
  describeOrganization,
  findOrganization,
  listOrganizations,
} from '../src/organizations/organizations.ts'
import { defaultLimits } from '../src/process/config.ts'
import { dropAllViews } from '../src/sql-views/sql-views.ts'
import { confirm } from './confirm.ts'
import { newPlainCommand } from './kith-command.ts'
import { formatCount, startProgress } from './progress.ts'

export function orgCommand(environment: NodeJS.ProcessEnv) {
  const organizations = newPlainCommand(
    environment,
    'org',
    'Creates, lists and deletes organizations, the tenants of the service.',
  ).examples('org create acme', 'org list')
  organizations
    .add('create', 'Creates an organization.')
    .examples('org create acme')
    .argument('<key>', 'The key: 1 to 63 of a-z, 0-9, _ and -, starting with a letter.')
    .onDatabase(async ({ db }, key) => {
      const { created_at } = await createOrganization(db, key)
      return { value: { key, created_at }, messages: [`Created organization ${key}.`] }
    })
  organizations
    .addList(['key', 'created_at'], 'list', 'Lists the organizations.')
    .examples('org list')
    .onDatabase(async ({ db }) => (await listOrganizations(db)).map(({ key, created_at }) => ({ key, created_at })))
  organizations
    .add(
      'delete',
      'Deletes an organization with everything in it. Its tokens are rejected within ten seconds; then its rows are deleted. It cannot be ' +
        'undone, but by restoring a backup. Run the command again if it was interrupted. The key is not given again.',
    )
    .examples('org delete acme', 'org delete acme --yes')
    .yes()
    .argument('<key>', 'The key, as shown by org list.')
    .onDatabase(async ({ db }, key, options) => {
      await requireDeletable(db, key)
      await confirm(options, `Delete the organization ${key}? It cannot be undone.`, () => contentsOf(db, key), key)
      const kept: string[] = []
      let count = 0
      const line = startProgress('rows', () => ({ count, fraction: null }), options)
      const removed = await deleteOrganization(db, key, {
        marked: async () => void kept.push(...(await dropAllViews(db, key))),
        waits: seconds => line.print(`Waiting ${seconds} s, until no request can use the organization any more.`),
        deleted: rows => {
          count = rows
        },
      }).finally(line.end)
      const messages = [`Deleted organization ${key}: ${formatCount(count)} rows.`, ...kept]
      return { value: { key, removed }, messages }
    })
  return organizations
}

/** Describes the contents of an organization, in lines. No line if its deletion has begun. */
async function contentsOf(db: Database, key: string): Promise<string[]> {
  const organization = await findOrganization(db, key)
  if (!organization) return []
  const { counts } = await describeOrganization(contextOf(db, organization.id), defaultLimits)
  return [
    `The organization ${key} was created at ${organization.created_at}. It has:`,
    ...Object.entries(counts).map(([name, count]) => `  ${formatCount(count).padStart(12)} ${name.replace('_', ' ')}`),
  ]
}
