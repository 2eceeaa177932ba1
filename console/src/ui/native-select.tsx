import styles from './field.module.css'

type NativeSelectProps<Value extends string> = {
  'aria-label': string
  options: readonly { value: Value; label: string }[]
  value: Value
  onChange(value: Value): void
}

/**
 * A list of values without further help, drawn by the browser. It saves 27 kB compared with `Select`, on every page and
 * on the lists.
 */
export function NativeSelect<Value extends string>({ options, onChange, ...props }: NativeSelectProps<Value>) {
  return (
    <select {...props} className={styles.input} onChange={event => onChange(event.target.value as Value)}>
      {options.map(({ value, label }) => (
        <option key={value} value={value}>
          {label}
        </option>
      ))}
    </select>
  )
}
