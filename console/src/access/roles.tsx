import { type Definitions, profileFieldNames, type Role, type RoleBody } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { isUnlimited, opens } from '../app/field-rights.ts'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { ownerName } from '../entity/address.ts'
import { entitiesOf } from '../entity/entities.ts'
import { changedMembers } from '../entity/equal.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { attributesOf, ownersOf, useDefinitions } from '../entity/schema.ts'
import { Button } from '../ui/button.tsx'
import { DialogButton } from '../ui/dialog.tsx'
import { Checkbox, TextField, useDraft } from '../ui/field.tsx'
import { FormDialog } from '../ui/form.tsx'
import { Loaded } from '../ui/loaded.tsx'
import { Badge, EmptyState, Problem, Section } from '../ui/page.tsx'
import { Select } from '../ui/select.tsx'
import { ColumnTable, type TableColumn } from '../ui/table.tsx'
import styles from './access.module.css'
import { messages } from './messages.ts'
import { rolesQuery } from './queries.ts'
import { ScopeChoice, ScopeList } from './scope-choice.tsx'

/** The roles: what clients, tokens and sessions may do, and which fields they see. */
export function RoleList() {
  const texts = useMessages(messages)
  const mayWrite = useScope('access:write') && isUnlimited()
  const roles = useQuery(rolesQuery)
  const createButton = mayWrite && (
    <DialogButton look="primary" dialog={close => <RoleDialog onClose={close} />}>
      {texts.newRole}
    </DialogButton>
  )
  return (
    <Section title={texts.roles} actions={createButton}>
      <p className="muted">{texts.rolesAdvice}</p>
      <Loaded query={roles} none={<EmptyState title={texts.noRoles} />}>
        {rows => <RoleTable roles={rows} />}
      </Loaded>
    </Section>
  )
}

function RoleTable({ roles }: { roles: Role[] }) {
  const texts = useMessages(messages)
  const mayWrite = useScope('access:write') && isUnlimited()
  const change = useWrite(
    ({ key, state }: Role) => client.access.roles.patch(key, { state: state === 'active' ? 'archived' : 'active' }),
    { refresh: [rolesQuery.queryKey] },
  )
  const stateButton = (role: Role) => {
    const [look, action] =
      role.state === 'active' ? (['danger', texts.archive] as const) : (['quiet', texts.activate] as const)
    return (
      mayWrite && (
        <Button look={look} aria-label={`${action}: ${role.name}`} onPress={() => change.mutate(role)}>
          {action}
        </Button>
      )
    )
  }
  return (
    <>
      {change.error && <Problem error={change.error} />}
      <ColumnTable
        label={texts.roles}
        rows={roles}
        rowKey={({ key }) => key}
        columns={[
          [texts.name, role => <RoleName role={role} />, 'name'],
          [texts.fields, ({ fields }) => (fields ? Object.keys(fields).join(', ') || texts.noFields : texts.allFields)],
          [texts.scopes, ({ scopes }) => <ScopeList scopes={scopes} />],
          [
            texts.state,
            ({ state }) =>
              state === 'active' ? (
                <Badge kind="positive">{texts.works}</Badge>
              ) : (
                <Badge kind="negative">{texts.archived}</Badge>
              ),
          ],
          ['', stateButton],
        ]}
      />
    </>
  )
}

function RoleName({ role }: { role: Role }) {
  const mayWrite = useScope('access:write') && isUnlimited()
  return (
    <>
      {mayWrite ? (
        <DialogButton look="quiet" dialog={close => <RoleDialog role={role} onClose={close} />}>
          {role.name}
        </DialogButton>
      ) : (
        role.name
      )}
      <div className="muted">
        <code>{role.key}</code>
      </div>
    </>
  )
}

/** The fields of a role that opens people without any field. */
const noFields: Role['fields'] = { people: { read: [], write: [] } }

/** A dialog that creates or changes a role. */
function RoleDialog({ role, onClose }: { role?: Role; onClose: () => void }) {
  const texts = useMessages(messages)
  const { definitions } = useDefinitions()
  const { draft, change, field } = useDraft({
    key: role?.key ?? '',
    name: role?.name ?? '',
    scopes: role?.scopes ?? [],
    fields: role ? role.fields : noFields,
  })
  const { scopes, fields } = draft
  const [key, name] = [draft.key.trim(), draft.name.trim()]
  const body: Omit<RoleBody, 'key'> = { name: name || key, scopes, fields }
  const changed = role && changedMembers(body, role)
  const save = useWrite(
    () => (role ? client.access.roles.patch(role.key, changed!) : client.access.roles.create({ ...body, key })),
    { refresh: [rolesQuery.queryKey], onSuccess: onClose },
  )
  return (
    <FormDialog
      title={role ? role.name : texts.newRole}
      size="wide"
      onSubmit={() => (changed && Object.keys(changed).length === 0 ? onClose() : save.mutate())}
      write={save}
      submit={role ? texts.save : texts.create}
      onClose={onClose}
    >
      {!role && <TextField label={texts.key} help={texts.roleKeyHelp} isRequired autoFocus {...field('key')} />}
      <TextField label={texts.name} {...field('name')} />
      <ScopeChoice {...field('scopes')} />
      <Checkbox
        name="/fields"
        help={texts.everyFieldHelp}
        isSelected={fields === null}
        onChange={isEvery => change({ fields: isEvery ? null : noFields })}
      >
        {texts.everyField}
      </Checkbox>
      {fields !== null && (
        <FieldMatrix definitions={definitions} fields={fields} onChange={changed => change({ fields: changed })} />
      )}
    </FormDialog>
  )
}

type RoleFields = NonNullable<Role['fields']>
type Use = keyof RoleFields[string]

type FieldMatrixProps = { definitions: Definitions; fields: RoleFields; onChange: (fields: RoleFields) => void }

const all = '*'
const attributes = 'attribute_values'
const isAttribute = (name: string) => name.startsWith(`${attributes}.`)

/** The fields of an owner, each to read and to write, beside the values that the role would show of an example. */
function FieldMatrix({ definitions, fields, onChange }: FieldMatrixProps) {
  const texts = useMessages(messages)
  const [owner, setOwner] = useState('people')
  const [example, setExample] = useState('')
  const values = useExample(owner, example)
  const named = fields[owner]
  const set = (access: RoleFields[string] | undefined) => {
    const { [owner]: _, ...others } = fields
    onChange(access ? { ...others, [owner]: access } : others)
  }
  return (
    <>
      <div className={styles.choices}>
        <Select
          label={texts.owner}
          options={ownersOf(definitions).map(value => ({ value, label: ownerName(value, definitions, texts.people) }))}
          value={owner}
          onChange={setOwner}
        />
        <TextField label={texts.example} help={texts.exampleHelp} value={example} onChange={setExample} />
      </div>
      {values.error && <Problem error={values.error} />}
      <Checkbox isSelected={named !== undefined} onChange={isOpen => set(isOpen ? { read: [], write: [] } : undefined)}>
        {texts.isOpen}
      </Checkbox>
      {named && <FieldTable {...{ definitions, owner, named, set }} values={values.data} />}
    </>
  )
}

type Values = Record<string, unknown> & { attribute_values?: Record<string, unknown> }

/** The entity whose values are shown beside the fields. */
const useExample = (owner: string, external_id: string) =>
  useQuery({
    queryKey: ['role-example', owner, external_id],
    enabled: external_id.trim() !== '',
    retry: false,
    queryFn: async ({ signal }): Promise<Values> =>
      (await entitiesOf(owner).get(external_id.trim(), { signal })) as unknown as Values,
  })

type TableProps = {
  definitions: Definitions
  owner: string
  named: RoleFields[string]
  set: (access: RoleFields[string]) => void
  values: Values | undefined
}

function FieldTable({ definitions, owner, named, set, values }: TableProps) {
  const texts = useMessages(messages)
  const { fields: labels } = useMessages(entityMessages)
  const own = owner === 'people' ? [...profileFieldNames, 'consents'] : []
  const declared = [...attributesOf(definitions, owner).values()].filter(({ state }) => state === 'active')
  const rows = [
    { name: all, label: texts.everyField },
    ...own.map(name => ({ name, label: (labels as Record<string, string>)[name] ?? texts.consents })),
    { name: attributes, label: texts.everyAttribute },
    ...declared.map(({ key, name }) => ({ name: `${attributes}.${key}`, label: name })),
  ]
  /** A role may write only fields that it may read. */
  const toggle = (use: Use, name: string, isOn: boolean) => {
    const change = (names: readonly string[], isOn: boolean) =>
      isOn ? [...names.filter(each => each !== name), name] : names.filter(each => each !== name)
    if (use === 'read') set({ read: change(named.read, isOn), write: isOn ? named.write : change(named.write, false) })
    else
      set({
        read: isOn && !opens(named.read, name) ? change(named.read, true) : named.read,
        write: change(named.write, isOn),
      })
  }
  const columnOf = (use: Use): TableColumn<(typeof rows)[number]> => [
    texts[use],
    ({ name, label }) => (
      <Checkbox
        aria-label={`${texts[use]}: ${label}`}
        isSelected={opens(named[use], name)}
        isDisabled={!named[use].includes(name) && opens(named[use], name)}
        onChange={isOn => toggle(use, name, isOn)}
      />
    ),
  ]
  return (
    <ColumnTable
      label={texts.fields}
      rows={rows}
      rowKey={({ name }) => name}
      columns={[
        [texts.field, ({ label }) => label, 'name'],
        columnOf('read'),
        columnOf('write'),
        values !== undefined && [
          texts.shown,
          ({ name }) => (opens(named.read, name) ? shownValue(values, name, texts.open) : <i>{texts.closed}</i>),
        ],
      ]}
    />
  )
}

/** A short form of a value. A list or an object becomes the word `open`. */
function shownValue(values: Values, name: string, open: string): string {
  if (name === all || name === attributes) return ''
  const value = isAttribute(name) ? values.attribute_values?.[name.slice(attributes.length + 1)] : values[name]
  if (value === null || value === undefined) return '—'
  return typeof value === 'object' ? open : String(value)
}
