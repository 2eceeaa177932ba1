import { randomBytes } from 'node:crypto'
import { contextOf } from '../src/db/context.ts'
import { currentDefinitions } from '../src/organizations/definitions.ts'
import { listOrganizations } from '../src/organizations/organizations.ts'
import { dropRetired, dropViews, findViews, renewViews, type SqlViews } from '../src/sql-views/sql-views.ts'
import { type Result, UsageError } from './command.ts'
import { confirm } from './confirm.ts'
import { readInput } from './files.ts'
import { newPlainCommand } from './kith-command.ts'
import { recordOperation, requireOrganization, type Session } from './session.ts'
import { createViews, isViewsName, loginSettings } from './views/create-views.ts'

type CreateOptions = { org: string; schema?: string; role?: string; fieldsOf?: string; passwordFile?: string }

const columns = ['organization', 'schema', 'role', 'fields_of', 'state', 'created_at']
const orgOption = ['--org <key>', 'The organization.', { required: true }] as const
const schemaOption = ['--schema <name>', 'The schema. Default: all of the organization.'] as const

export function viewsCommand(environment: NodeJS.ProcessEnv) {
  const views = newPlainCommand(
    environment,
    'views',
    'Makes, lists, renews and drops views of an organization, which a role of PostgreSQL reads by SQL.',
  ).examples('views create --org acme', 'views list', 'views drop --org acme')
  views
    .add(
      'create',
      'Makes a schema of views: one of people, one of each stack, consents and changes; and a login role of PostgreSQL that reads them and ' +
        'nothing else. Prints its password, once. The service renews the views when definitions change.',
    )
    .examples(
      'views create --org acme',
      'views create --org acme --fields-of desk',
      'views create --org acme --role reporting',
    )
    .option(...orgOption)
    .option('--schema <name>', 'The schema, and the login role. Default: kith_ and the key, and that of --fields-of.')
    .option('--fields-of <key>', 'Leaves out the fields that this role of kith cannot read.')
    .option('--role <name>', 'A login role of PostgreSQL that exists, instead of a new one.')
    .option('--password-file <file>', 'A file that holds the password of the new role, or - for standard input.')
    .onDatabase((session, options) => create(environment, session, options))
  views
    .addList(columns, 'list', 'Lists the schemas of views of all organizations.')
    .examples('views list')
    .onDatabase(async ({ db }) => {
      const rows: object[] = []
      for (const { id, key } of await listOrganizations(db))
        rows.push(...(await findViews(db, id)).map(views => ({ organization: key, ...rowOf(views) })))
      return rows
    })
  views
    .add('renew', 'Renews the views now, as a running service does by itself within seconds.')
    .examples('views renew --org acme')
    .option(...orgOption)
    .option(...schemaOption)
    .onDatabase(async ({ db }, options) => {
      const { id, views } = await requireViews(db, options)
      const renewed: string[] = []
      for (const { schema_name } of views) {
        if (await renewViews(db, { organization_id: id, schema_name })) renewed.push(schema_name)
        await dropRetired(db, { organization_id: id, schema_name })
      }
      const messages = views.map(({ schema_name: name }) =>
        renewed.includes(name) ? `Renewed ${name}.` : `${name} is current.`,
      )
      return { value: { renewed }, messages }
    })
  views
    .add(
      'drop',
      'Drops the views with their schema, what others have built on them, and the role that kith made. Its sessions end.',
    )
    .examples('views drop --org acme', 'views drop --org acme --yes')
    .yes()
    .option(...orgOption)
    .option(...schemaOption)
    .onDatabase(async (session, options) => {
      const { id, views } = await requireViews(session.db, options)
      const names = views.map(({ schema_name }) => schema_name)
      await confirm(options, `Drop ${names.join(', ')}?`)
      const messages: string[] = []
      for (const each of views) {
        const kept = await dropViews(session.db, id, each)
        await recordOperation(session, [id], {
          event: 'sql_views_dropped',
          target: each.schema_name,
          command: 'kith views drop',
        })
        messages.push(`Dropped ${each.schema_name}.`, ...(kept === undefined ? [] : [kept]))
      }
      return { value: { dropped: names }, messages }
    })
  return views
}

async function create(environment: NodeJS.ProcessEnv, session: Session, options: CreateOptions): Promise<Result> {
  const { org, role, fieldsOf, passwordFile } = options
  const schema =
    options.schema ?? ['kith', org, ...(fieldsOf === undefined ? [] : [fieldsOf])].join('_').replaceAll('-', '_')
  if (!isViewsName(schema))
    throw new UsageError(`The name ${schema} cannot be that of the schema. Give one of a-z, 0-9 and _ with --schema.`)
  if (role !== undefined && passwordFile !== undefined)
    throw new UsageError('The role exists and has its password. Leave out --password-file.')
  const { id } = await requireOrganization(session.db, org)
  if (fieldsOf !== undefined) await requireRole(session, id, fieldsOf)
  const password = role === undefined ? await readPassword(environment, passwordFile) : undefined
  const login = role ?? schema
  const others = await createViews(session.db, {
    organization_id: id,
    schema_name: schema,
    login,
    password,
    role: fieldsOf,
  })
  await recordOperation(session, [id], { event: 'sql_views_created', target: schema, command: 'kith views create' })
  const value = { schema, role: login, ...(password !== undefined && passwordFile === undefined && { password }) }
  const messages = [`Made the schema ${schema}, which the role ${login} reads.`]
  if (role !== undefined) messages.push(`Set what the role lacks: ${loginSettings.join(', ')}.`)
  if (others.length > 0)
    messages.push(
      `PostgreSQL lets every role connect to ${others.join(', ')} too. \`revoke connect on database … from public\` ends it.`,
    )
  if (value.password !== undefined) messages.push('The password is shown once:')
  return { value, messages, lines: value.password === undefined ? [] : [value.password] }
}

async function requireRole({ db }: Session, organization_id: number, key: string): Promise<void> {
  const { roles } = await currentDefinitions(contextOf(db, organization_id))
  if (!roles.some(role => role.key === key && role.state === 'active'))
    throw new Error(`There is no active role ${JSON.stringify(key)}. See kith role list.`)
}

/** The password has only ASCII, because SCRAM normalizes other characters (SASLprep). */
const passwordPattern = /^[!-~]{12,200}$/

async function readPassword(environment: NodeJS.ProcessEnv, file: string | undefined): Promise<string> {
  if (file === undefined) return randomBytes(24).toString('base64url')
  const password = (await readInput(environment, file)).toString().replace(/\r?\n$/, '')
  if (passwordPattern.test(password)) return password
  throw new UsageError('The password must have 12 to 200 printable ASCII characters without spaces.')
}

const rowOf = ({ schema_name, login, role, has_login, is_current, created_at }: SqlViews) => ({
  schema: schema_name,
  role: login,
  fields_of: role,
  state: has_login ? (is_current ? 'current' : 'outdated') : 'without role',
  created_at,
})

async function requireViews(db: Session['db'], { org, schema }: { org: string; schema?: string }) {
  const { id } = await requireOrganization(db, org)
  const views = await findViews(db, id, schema)
  if (views.length > 0) return { id, views }
  throw new Error(
    `The organization ${org} has no ${schema === undefined ? 'views' : `schema ${schema}`}. See kith views list.`,
  )
}
