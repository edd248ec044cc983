# Writes train.csv and test.csv: days from 1930 to 2029 as people write them, and as ISO 8601 does. Of every ten
# neighbouring days one belongs to the test alone.
#
#     awk -f dates.awk

# The next number below n: x -> (16807 x) mod (2^31 - 1) of Park and Miller (1988), exact in double.
function draw(n) {
    x = (16807 * x) % 2147483647
    return x % n
}

function length_of(month, year) {
    if (month == 2) return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31
}

function ending(day) {
    if (day > 10 && day < 14) return "th"
    return day % 10 == 1 ? "st" : day % 10 == 2 ? "nd" : day % 10 == 3 ? "rd" : "th"
}

function written(day, month, year, weekday,   form, name, brief) {
    form = draw(8)
    name = names[month]
    brief = substr(name, 1, 3)
    if (form == 0) return name " " day ", " year
    if (form == 1) return day " " name " " year
    if (form == 2) return "the " day ending(day) " of " name " " year
    if (form == 3) return weekdays[weekday] ", " name " " day ", " year
    if (form == 4) return day "." month "." year
    if (form == 5) return day " " brief " '" sprintf("%02d", year % 100)
    if (form == 6) return tolower(substr(weekdays[weekday], 1, 3)) " " day "-" tolower(brief) "-" year
    return "the " words[day] " of " name " " year
}

BEGIN {
    split("January February March April May June July August September October November December", names, " ")
    split("Monday Tuesday Wednesday Thursday Friday Saturday Sunday", weekdays, " ")
    split("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth " \
          "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth twenty-first " \
          "twenty-second twenty-third twenty-fourth twenty-fifth twenty-sixth twenty-seventh twenty-eighth " \
          "twenty-ninth thirtieth thirty-first", words, " ")
    x = 1
    print "written,iso" >"train.csv"
    print "written,iso" >"test.csv"
    for (year = 1930; year < 2030; year++)
        for (month = 1; month <= 12; month++)
            for (day = 1; day <= length_of(month, year); day++) {
                weekday = (days++ + 2) % 7 + 1 # the first of January 1930 was a Wednesday
                if (draw(8) > 0) continue
                file = days % 10 == 0 ? "test.csv" : "train.csv"
                text = written(day, month, year, weekday)
                if (text ~ /,/) text = "\"" text "\""
                printf "%s,%04d-%02d-%02d\n", text, year, month, day >file
            }
}
