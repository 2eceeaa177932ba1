import { type Definitions, profileFieldNames, type Role } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { opens } from '../app/field-rights.ts'
import { useMessages } from '../app/language.tsx'
import { entitiesOf } from '../entity/entities.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { attributesOf, ownersOf } from '../entity/schema.ts'
import { Checkbox, TextField } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { Select } from '../ui/select.tsx'
import { Table } from '../ui/table.tsx'
import styles from './access.module.css'
import { messages } from './messages.ts'

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
          options={ownersOf(definitions).map(value => ({ value, label: ownerName(definitions, value, texts.people) }))}
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

const ownerName = ({ stacks }: Definitions, owner: string, people: string) =>
  owner === 'people' ? people : (stacks.find(({ key }) => key === owner)?.name ?? owner)

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
