import { useMessages } from '../app/language.tsx'
import { attributePrefix } from '../filters/field-types.ts'
import type { FilterField } from '../filters/fields.ts'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { Checkbox, FieldGroup } from '../ui/field.tsx'
import { Icon } from '../ui/icon.tsx'
import type { ChosenColumns } from './chosen-columns.ts'
import { useColumnFields } from './columns.tsx'
import styles from './list.module.css'
import { messages } from './messages.ts'

type ColumnsDialogProps = { owner: string; columns: ChosenColumns; onClose(): void }

/** The initial width for the buttons, and the step of one press, in pixels. */
const [standardWidth, widthStep] = [200, 40]

/** Chooses the columns of the table, their order and widths. The table changes at once. */
export default function ColumnsDialog({ owner, columns, onClose }: ColumnsDialogProps) {
  const texts = useMessages(messages)
  const { names, choose, widths, resize } = columns
  const fields = useColumnFields(owner)
  const attributes = fields.filter(({ name }) => name.startsWith(attributePrefix))
  const group = (label: string, fields: readonly FilterField[]) => (
    <FieldGroup legend={label} look="grid">
      {fields.map(({ name, label }) => (
        <Checkbox
          key={name}
          isSelected={names.includes(name)}
          // A new column is the last one.
          onChange={isChosen => choose(isChosen ? [...names, name] : names.filter(other => other !== name))}
        >
          <span className={styles.columnName}>{label}</span>
        </Checkbox>
      ))}
    </FieldGroup>
  )
  return (
    <Dialog title={texts.columnsTitle} onClose={onClose} hasDraft={false}>
      <p className="muted">{texts.columnsHelp}</p>
      {group(
        texts.profile,
        fields.filter(({ name }) => !name.startsWith(attributePrefix)),
      )}
      {attributes.length > 0 && group(texts.attributes, attributes)}
      <FieldGroup legend={texts.columnOrder}>
        <ol className={styles.columnOrder}>
          {names.map((name, at) => {
            const label = fields.find(each => each.name === name)?.label ?? name
            const move = (by: number) => choose(names.with(at, names[at + by]!).with(at + by, name))
            const width = widths[name] ?? standardWidth
            return (
              <li key={name}>
                <span className={styles.columnName}>{label}</span>
                <Button aria-label={texts.earlier(label)} look="quiet" isDisabled={at === 0} onPress={() => move(-1)}>
                  <Icon name="ascending" />
                </Button>
                <Button
                  aria-label={texts.later(label)}
                  look="quiet"
                  isDisabled={at === names.length - 1}
                  onPress={() => move(1)}
                >
                  <Icon name="descending" />
                </Button>
                <Button
                  aria-label={texts.narrower(label)}
                  look="quiet"
                  isDisabled={width <= widthStep}
                  onPress={() => resize(name, width - widthStep)}
                >
                  −
                </Button>
                <Button aria-label={texts.wider(label)} look="quiet" onPress={() => resize(name, width + widthStep)}>
                  +
                </Button>
              </li>
            )
          })}
        </ol>
      </FieldGroup>
      <Actions>
        <Button onPress={columns.reset}>{texts.reset}</Button>
        <Button look="primary" onPress={onClose} autoFocus>
          {texts.close}
        </Button>
      </Actions>
    </Dialog>
  )
}
