import { useMessages } from '../app/language.tsx'
import { useDefinitions } from '../entity/schema.ts'
import { attributePrefix } from '../filters/field-types.ts'
import type { FilterField } from '../filters/fields.ts'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { Checkbox, FieldGroup } from '../ui/field.tsx'
import { standardColumns } from './chosen-columns.ts'
import { useColumnFields } from './columns.tsx'
import styles from './list.module.css'
import { messages } from './messages.ts'

type ColumnsDialogProps = {
  owner: string
  names: readonly string[]
  onChange(names: string[]): void
  onClose(): void
}

/** Chooses the columns of the table. The table changes at once. */
export default function ColumnsDialog({ owner, names, onChange, onClose }: ColumnsDialogProps) {
  const texts = useMessages(messages)
  const { definitions } = useDefinitions()
  const fields = useColumnFields(owner)
  const attributes = fields.filter(({ name }) => name.startsWith(attributePrefix))
  const group = (label: string, fields: readonly FilterField[]) => (
    <FieldGroup legend={label} look="grid">
      {fields.map(({ name, label }) => (
        <Checkbox
          key={name}
          isSelected={names.includes(name)}
          // Columns stay in the order in which they were chosen.
          onChange={isChosen => onChange(isChosen ? [...names, name] : names.filter(other => other !== name))}
        >
          <span className={styles.columnName}>{label}</span>
        </Checkbox>
      ))}
    </FieldGroup>
  )
  return (
    <Dialog title={texts.columnsTitle} isOpen onClose={onClose} hasDraft={false}>
      <p className={styles.muted}>{texts.columnsHelp}</p>
      {group(
        texts.profile,
        fields.filter(({ name }) => !name.startsWith(attributePrefix)),
      )}
      {attributes.length > 0 && group(texts.attributes, attributes)}
      <Actions>
        <Button onPress={() => onChange(standardColumns(owner, definitions))}>{texts.reset}</Button>
        <Button look="primary" onPress={onClose} autoFocus>
          {texts.close}
        </Button>
      </Actions>
    </Dialog>
  )
}
