import { TextField } from '../ui/field.tsx'

type WholeNumberProps = { label: string; maxDigits: number; value: string; onChange(digits: string): void }

/** A number without a sign and without decimals. Other characters are not taken. */
export function WholeNumberField({ label, maxDigits, value, onChange }: WholeNumberProps) {
  return (
    <TextField
      aria-label={label}
      inputMode="numeric"
      maxLength={maxDigits}
      value={value}
      onChange={text => onChange(text.replaceAll(/\D/g, ''))}
    />
  )
}
