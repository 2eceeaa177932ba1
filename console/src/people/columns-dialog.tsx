import { useMessages } from '../app/language.tsx'
import { attributePrefix } from '../filters/field-types.ts'
import type { FilterField } from '../filters/fields.ts'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { Checkbox } from '../ui/field.tsx'
import { defaultColumns } from './chosen-columns.ts'
import { useColumnFields } from './columns.tsx'
import { messages } from './messages.ts'
import styles from './people.module.css'

type ColumnsDialogProps = { names: readonly string[]; onChange(names: string[]): void; onClose(): void }

/** Chooses the columns of the table. The table changes at once. */
export default function ColumnsDialog({ names, onChange, onClose }: ColumnsDialogProps) {
  const texts = useMessages(messages)
  const fields = useColumnFields()
  const profile = fields.filter(({ name }) => !name.startsWith(attributePrefix))
  const attributes = fields.filter(({ name }) => name.startsWith(attributePrefix))
  // Columns stay in the order in which they were chosen.
  const toggle = (name: string, isChosen: boolean) =>
    onChange(isChosen ? [...names, name] : names.filter(other => other !== name))
  const group = { names, toggle }
  return (
    <Dialog title={texts.columnsTitle} isOpen onClose={onClose} hasDraft={false}>
      <p className={styles.muted!}>{texts.columnsHelp}</p>
      <ColumnGroup label={texts.profile} fields={profile} {...group} />
      {attributes.length > 0 && <ColumnGroup label={texts.attributes} fields={attributes} {...group} />}
      <Actions>
        <Button onPress={() => onChange(defaultColumns)}>{texts.reset}</Button>
        <Button look="primary" onPress={onClose} autoFocus>
          {texts.close}
        </Button>
      </Actions>
    </Dialog>
  )
}

type ColumnGroupProps = {
  label: string
  fields: readonly FilterField[]
  names: readonly string[]
  toggle(name: string, isChosen: boolean): void
}

function ColumnGroup({ label, fields, names, toggle }: ColumnGroupProps) {
  return (
    <fieldset className={styles.columnGroup!}>
      <legend>{label}</legend>
      {fields.map(field => (
        <Checkbox key={field.name} isSelected={names.includes(field.name)} onChange={on => toggle(field.name, on)}>
          <span className={styles.columnName!}>{field.label}</span>
        </Checkbox>
      ))}
    </fieldset>
  )
}
