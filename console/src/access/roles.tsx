import { type Definitions, profileFieldNames, type Role, type RoleBody } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { opens } from '../app/field-rights.ts'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { ownerName } from '../entity/address.ts'
import { entitiesOf } from '../entity/entities.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { attributesOf, ownersOf, useDefinitions } from '../entity/schema.ts'
import { Button } from '../ui/button.tsx'
import { Checkbox, TextField, useDraft } from '../ui/field.tsx'
import { FormDialog } from '../ui/form.tsx'
import { Badge, EmptyState, Loading, Problem, Section } from '../ui/page.tsx'
import { Select } from '../ui/select.tsx'
import { Table } from '../ui/table.tsx'
import styles from './access.module.css'
import { messages } from './messages.ts'
import { rolesQuery } from './queries.ts'
import { ScopeChoice, ScopeList } from './scope-choice.tsx'

/** The roles: what clients, tokens and sessions may do, and which fields they see. */
export function RoleList() {
  const texts = useMessages(messages)
  const mayWrite = useScope('access:write')
  // Null: a new role.
  const [edited, setEdited] = useState<Role | null | undefined>(undefined)
  const roles = useQuery(rolesQuery)
  return (
    <Section
      title={texts.roles}
      actions={
        mayWrite && (
          <Button look="primary" onPress={() => setEdited(null)}>
            {texts.newRole}
          </Button>
        )
      }
    >
      <p className="muted">{texts.rolesAdvice}</p>
      {roles.isPending && <Loading />}
      {roles.error && <Problem error={roles.error} onRetry={() => roles.refetch()} />}
      {roles.data?.length === 0 && <EmptyState title={texts.noRoles} />}
      {roles.data && roles.data.length > 0 && <RoleTable roles={roles.data} onEdit={mayWrite ? setEdited : null} />}
      {edited !== undefined && <RoleDialog role={edited} onClose={() => setEdited(undefined)} />}
    </Section>
  )
}

function RoleTable({ roles, onEdit }: { roles: Role[]; onEdit: ((role: Role) => void) | null }) {
  const texts = useMessages(messages)
  const change = useWrite(
    ({ key, state }: Role) => client.access.roles.patch(key, { state: state === 'active' ? 'archived' : 'active' }),
    { refresh: [rolesQuery.queryKey] },
  )
  return (
    <>
      {change.error && <Problem error={change.error} />}
      <Table label={texts.roles} headers={[texts.name, texts.roleFields, texts.scopes, texts.state, '']}>
        {roles.map(role => (
          <tr key={role.key}>
            <th scope="row">
              {onEdit ? (
                <Button look="quiet" onPress={() => onEdit(role)}>
                  {role.name}
                </Button>
              ) : (
                role.name
              )}
              <div className="muted">
                <code>{role.key}</code>
              </div>
            </th>
            <td>{role.fields ? Object.keys(role.fields).join(', ') || texts.noFields : texts.allFields}</td>
            <td>
              <ScopeList scopes={role.scopes} />
            </td>
            <td>
              {role.state === 'active' ? (
                <Badge kind="positive">{texts.works}</Badge>
              ) : (
                <Badge kind="negative">{texts.archived}</Badge>
              )}
            </td>
            <td>
              {onEdit && (
                <Button
                  look={role.state === 'active' ? 'danger' : 'quiet'}
                  aria-label={`${role.state === 'active' ? texts.archive : texts.activate}: ${role.name}`}
                  onPress={() => change.mutate(role)}
                >
                  {role.state === 'active' ? texts.archive : texts.activate}
                </Button>
              )}
            </td>
          </tr>
        ))}
      </Table>
    </>
  )
}

/** A role that opens people, and none of their fields. */
const noFields: Role['fields'] = { people: { read: [], write: [] } }

/** A dialog that makes a role, or changes one. */
export function RoleDialog({ role, onClose }: { role: Role | null; onClose: () => void }) {
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
  const save = useWrite(
    (body: Omit<RoleBody, 'key'>) =>
      role ? client.access.roles.patch(role.key, body) : client.access.roles.create({ ...body, key }),
    { refresh: [rolesQuery.queryKey], onSuccess: onClose },
  )
  return (
    <FormDialog
      title={role ? role.name : texts.newRole}
      size="wide"
      onSubmit={() => save.mutate({ name: name || key, scopes, fields })}
      write={save}
      submit={role ? texts.save : texts.create}
      onClose={onClose}
    >
      {!role && <TextField label={texts.roleKey} help={texts.roleKeyHelp} isRequired autoFocus {...field('key')} />}
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

export type RoleFields = NonNullable<Role['fields']>
type Use = keyof RoleFields[string]

type Props = { definitions: Definitions; fields: RoleFields; onChange: (fields: RoleFields) => void }

const all = '*'
const attributes = 'attribute_values'
const isAttribute = (name: string) => name.startsWith(`${attributes}.`)

/** The fields of an owner, each to read and to write, beside the values of a person whom the role would be shown. */
export function FieldMatrix({ definitions, fields, onChange }: Props) {
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
  /** Only what is read may be written. */
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
  const isFixed = (use: Use, name: string) => !named[use].includes(name) && opens(named[use], name)
  return (
    <Table label={texts.roleFields} headers={[texts.field, texts.read, texts.write, ...(values ? [texts.shown] : [])]}>
      {rows.map(({ name, label }) => (
        <tr key={name}>
          <th scope="row">{label}</th>
          {(['read', 'write'] as const).map(use => (
            <td key={use}>
              <Checkbox
                aria-label={`${texts[use]}: ${label}`}
                isSelected={opens(named[use], name)}
                isDisabled={isFixed(use, name)}
                onChange={isOn => toggle(use, name, isOn)}
              />
            </td>
          ))}
          {values && <td>{opens(named.read, name) ? shownValue(values, name, texts.open) : <i>{texts.closed}</i>}</td>}
        </tr>
      ))}
    </Table>
  )
}

/** A value in short. That of a list or an object is a word which says that it is open. */
function shownValue(values: Values, name: string, open: string): string {
  if (name === all || name === attributes) return ''
  const value = isAttribute(name) ? values.attribute_values?.[name.slice(attributes.length + 1)] : values[name]
  if (value === null || value === undefined) return '—'
  return typeof value === 'object' ? open : String(value)
}
